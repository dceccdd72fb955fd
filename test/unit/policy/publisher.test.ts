import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidOptionError, InvalidPolicyError, PolicyConflictError, PolicySourceError } from '../../../src/errors.js';
import { memoryPolicySource } from '../../../src/policy/memory-source.js';
import { parsePolicies } from '../../../src/policy/parse-policy.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import type { PolicySource } from '../../../src/policy/policy-source.js';
import { PolicyBook } from '../../../src/policy/publisher.js';
import { PolicyRegistry } from '../../../src/policy/registry.js';
import { silentObserver } from '../../../src/telemetry/observer.js';

const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };
const inCode: PolicyDocument = { name: 'api', ceiling: { rate: 1, burst: 1 } };
const tighter: PolicyDocument = { name: 'api', ceiling: { rate: 0.5, burst: 1 } };

let now: number;
let source: PolicySource;

beforeEach(() => {
  now = 1_700_000_000_000.5;
  source = memoryPolicySource();
});

/** What a limiter has: a registry that is fed by the source unless `deaf`, and a book. */
async function setUp({ policies = [inCode], deaf = false } = {}) {
  const time = { wallNow: () => now };
  const registry = new PolicyRegistry({ policies: parsePolicies(policies), time, observer: silentObserver });
  if (!deaf) await source.watch({ update: (update) => registry.apply(update), trouble: () => {} });
  return new PolicyBook({ registry, source, time, observer: { inject: () => trace } });
}

describe('PolicyBook', () => {
  it('lists and gets the documents in force, frozen', async () => {
    const book = await setUp({ policies: [inCode, { ...inCode, name: 'web' }] });
    expect(book.list()).toEqual([
      { ...inCode, version: 0 },
      { ...inCode, name: 'web', version: 0 },
    ]);
    expect(book.get('web')).toEqual({ ...inCode, name: 'web', version: 0 });
    expect(book.get('nope')).toBeUndefined();
    expect(Object.isFrozen(book.get('api'))).toBe(true);
  });

  it('publishes under the wall clock as version, in force here at once and everywhere else by the source', async () => {
    const here = await setUp({ deaf: true });
    const there = await setUp();
    const policy = await here.publish(tighter);
    expect(policy.version).toBe(1_700_000_000_000);
    expect(policy.document).toEqual({ ...tighter, version: 1_700_000_000_000 });
    expect(here.get('api')).toEqual(policy.document);
    expect(there.get('api')).toEqual(policy.document);
    expect(await source.list()).toEqual([policy.document]);
  });

  it('goes one above the highest version seen where the clock is behind', async () => {
    const book = await setUp({ policies: [{ ...inCode, version: 1_800_000_000_000 }] });
    expect((await book.publish(tighter)).version).toBe(1_800_000_000_001);
    expect((await book.publish(tighter)).version).toBe(1_800_000_000_002);
    now = 0;
    expect((await book.publish({ ...tighter, version: 3 })).version).toBe(1_800_000_000_003);
  });

  it('sends the present trace context along', async () => {
    const heard: unknown[] = [];
    await source.watch({ update: (update) => heard.push(update.trace), trouble: () => {} });
    await (await setUp()).publish(tighter);
    expect(heard).toEqual([trace]);
  });

  it('does not overwrite a version that this limiter has not seen', async () => {
    const deaf = await setUp({ deaf: true });
    await (await setUp()).publish(tighter);
    await expect(deaf.publish(inCode)).rejects.toThrow(PolicyConflictError);
    expect(deaf.get('api')).toEqual({ ...inCode, version: 0 });
    // Told to, it does.
    expect((await deaf.publish(inCode, { expectedVersion: 1_700_000_000_000 })).version).toBe(1_700_000_000_001);
  });

  it('publishes again to a store that lost its data, above the version lost', async () => {
    const book = await setUp();
    const lost = await book.publish(tighter);
    const empty = memoryPolicySource();
    Object.assign(source, { list: () => empty.list(), publish: empty.publish.bind(empty) });
    const again = await book.publish(inCode);
    expect(again.version).toBe(lost.version + 1);
    expect(await empty.list()).toEqual([again.document]);
  });

  it('keeps to expectedVersion', async () => {
    const book = await setUp();
    await expect(book.publish(tighter, { expectedVersion: 7 })).rejects.toThrow(PolicyConflictError);
    const { version } = await book.publish(tighter, { expectedVersion: 0 });
    await expect(book.publish(inCode, { expectedVersion: 0 })).rejects.toThrow(PolicyConflictError);
    expect(book.get('api')).toEqual({ ...tighter, version });
  });

  it.each([-1, 1.5, Number.NaN, '3', null])('refuses expectedVersion %o', async (expectedVersion) => {
    const refused = (await setUp()).publish(tighter, { expectedVersion: expectedVersion as number });
    await expect(refused).rejects.toThrow(InvalidOptionError);
    await expect(refused).rejects.toThrow('Expected `expectedVersion` to be a whole number of at least 0, got ');
  });

  it('sends nothing that is not a policy', async () => {
    const book = await setUp();
    await expect(book.publish({ name: 'api', ceiling: { rate: Number.NaN, burst: 1 } })).rejects.toThrow(
      new InvalidPolicyError(
        'Expected `ceiling.rate` to be a positive number with at most 6 decimals, got NaN. (policy "api")',
        { path: ['ceiling', 'rate'] },
      ),
    );
    expect(await source.list()).toEqual([]);
  });

  it('changes nothing here where the source fails', async () => {
    const book = await setUp();
    Object.assign(source, { publish: () => Promise.reject(new PolicySourceError('no answer')) });
    await expect(book.publish(tighter)).rejects.toThrow('no answer');
    expect(book.get('api')).toEqual({ ...inCode, version: 0 });
  });

  it('tells watchers of each change, once', async () => {
    const book = await setUp();
    const heard: unknown[] = [];
    const stop = book.watch((policy, previous) => heard.push([policy.version, previous?.version]));
    const { version } = await book.publish(tighter);
    stop();
    await book.publish(inCode);
    expect(heard).toEqual([[version, 0]]);
  });
});
