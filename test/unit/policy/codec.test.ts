import { describe, expect, it } from 'vitest';
import { InvalidPolicyError } from '../../../src/errors.js';
import { MAX_POLICY_BYTES, policyFromMessage, policyToMessage } from '../../../src/policy/codec.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';

const document: PolicyDocument = { name: 'api', version: 3, local: { rate: 1, burst: 1 } };

describe('a policy message', () => {
  it('is JSON in UTF-8, and gives back the document', () => {
    const message = policyToMessage({ ...document, overrides: { 'clé €': { mode: 'deny' } } });
    expect(new TextDecoder().decode(message)).toContain('"clé €"');
    expect(policyFromMessage(message)).toEqual({ ...document, overrides: { 'clé €': { mode: 'deny' } } });
  });

  it('carries the key "__proto__"', () => {
    const overrides = JSON.parse('{"__proto__":{"mode":"deny"}}');
    const decoded = policyFromMessage(policyToMessage({ ...document, overrides })) as { overrides: object };
    expect(Object.keys(decoded.overrides)).toEqual(['__proto__']);
  });

  it.each<[string, Uint8Array]>([
    ['no bytes', new Uint8Array()],
    ['text', new TextEncoder().encode('api')],
    ['half a document', policyToMessage(document).slice(0, -1)],
    ['bytes that are not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ])('made of %s is refused with the cause', (_, message) => {
    const act = () => policyFromMessage(message);
    expect(act).toThrow(InvalidPolicyError);
    expect(act).toThrow(`Expected a policy message to be JSON in UTF-8, got ${message.length} other bytes.`);
    expect(act).toThrow(expect.objectContaining({ cause: expect.any(Error) }));
  });

  it('may have 512 KiB and not a byte more, in either direction', () => {
    const empty = policyToMessage({ ...document, overrides: { '': {} } }).length;
    const largest = { ...document, overrides: { ['k'.repeat(MAX_POLICY_BYTES - empty)]: {} } };
    const tooLarge = { ...document, overrides: { ['k'.repeat(MAX_POLICY_BYTES - empty + 1)]: {} } };
    expect(policyToMessage(largest)).toHaveLength(MAX_POLICY_BYTES);
    expect(policyFromMessage(policyToMessage(largest))).toEqual(largest);
    expect(() => policyToMessage(tooLarge)).toThrow(
      'Expected a policy message of at most 524288 bytes, got 524289. (policy "api")',
    );
    expect(() => policyFromMessage(new Uint8Array(MAX_POLICY_BYTES + 1))).toThrow(
      'Expected a policy message of at most 524288 bytes, got 524289.',
    );
  });
});
