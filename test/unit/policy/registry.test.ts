import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidPolicyError } from '../../../src/errors.js';
import { parsePolicies } from '../../../src/policy/parse-policy.js';
import type { PolicyDocument } from '../../../src/policy/policy.js';
import { PolicyRegistry, type RegistryUpdate } from '../../../src/policy/registry.js';
import type { PolicyChange } from '../../../src/telemetry/observer.js';

const NOW = 1_700_000_000_000;

function document(version: number, rate = 1, name = 'api'): PolicyDocument {
  return { name, version, ceiling: { rate, burst: 1 } };
}

function update(document: unknown, fields: Partial<RegistryUpdate> = {}): RegistryUpdate {
  return { name: 'api', document, via: 'watch', ...fields };
}

/** A registry, and all that it reported; the reports on the policies given in code are left out. */
function setUp(...inCode: PolicyDocument[]) {
  const changes: PolicyChange[] = [];
  const troubles: Error[] = [];
  const registry = new PolicyRegistry({
    policies: parsePolicies(inCode),
    time: { wallNow: () => NOW },
    observer: { policyChanged: (change) => changes.push(change), trouble: (error) => troubles.push(error) },
  });
  const inCodeChanges = changes.splice(0);
  return { registry, changes, troubles, inCodeChanges };
}

describe('PolicyRegistry', () => {
  it('holds the policies given in code from the start', () => {
    const { registry, inCodeChanges } = setUp(document(0), document(0, 1, 'web'));
    expect([...registry.names()]).toEqual(['api', 'web']);
    expect(registry.get('api')?.terms.fence).toBe('api');
    expect(registry.get('nope')).toBeUndefined();
    expect(inCodeChanges).toMatchObject([
      { policy: 'api', version: 0, previousVersion: undefined, outcome: 'applied', via: 'code' },
      { policy: 'web', version: 0, previousVersion: undefined, outcome: 'applied', via: 'code' },
    ]);
  });

  it('applies a newer version, tells listeners of it and of the one before, and reports it', () => {
    const { registry, changes } = setUp(document(0));
    const heard: [number, number | undefined][] = [];
    registry.onChange((policy, previous) => heard.push([policy.version, previous?.version]));
    registry.apply(update(document(7), { via: 'hint', publishedAt: NOW - 25, trace: { traceparent: '00-a-b-01' } }));
    registry.apply(update(document(1, 1, 'new'), { name: 'new' }));
    expect(heard).toEqual([
      [7, 0],
      [1, undefined],
    ]);
    expect(changes[0]).toEqual({
      policy: 'api',
      version: 7,
      previousVersion: 0,
      outcome: 'applied',
      via: 'hint',
      lagMs: 25,
      trace: { traceparent: '00-a-b-01' },
      error: undefined,
    });
    expect(changes[1]).toMatchObject({ policy: 'new', version: 1, previousVersion: undefined, lagMs: undefined });
  });

  it('never reports a negative lag, though the publisher’s clock be ahead', () => {
    const { registry, changes } = setUp();
    registry.apply(update(document(1), { publishedAt: NOW + 1_000 }));
    expect(changes[0]?.lagMs).toBe(0);
  });

  it('ignores an older version, and says so (C142)', () => {
    const { registry, changes } = setUp(document(5));
    registry.apply(update(document(4)));
    expect(registry.get('api')?.version).toBe(5);
    expect(changes).toMatchObject([{ version: 4, previousVersion: 5, outcome: 'ignored', error: undefined }]);
  });

  it('never goes back, though what is read lags behind what was heard (C142)', () => {
    const { registry, changes } = setUp(document(17));
    const active: (number | undefined)[] = [];
    registry.onChange(({ version }) => active.push(version));
    registry.apply(update(document(41)));
    // The hint brings the policy along: nothing has to be read after it.
    registry.apply(update(document(42), { via: 'hint' }));
    for (const lagging of [41, 41, 42, 40]) registry.apply(update(document(lagging), { via: 'snapshot' }));
    expect(active).toEqual([41, 42]);
    expect(registry.get('api')?.version).toBe(42);
    expect(changes.map(({ version, outcome }) => [version, outcome])).toEqual([
      [41, 'applied'],
      [42, 'applied'],
      [41, 'ignored'],
      [41, 'ignored'],
      [40, 'ignored'],
    ]);
  });

  it('takes ten thousand updates as they come, one of each policy being kept (C145)', () => {
    const names = Array.from({ length: 20 }, (_, i) => `policy-${i}`);
    const registry = new PolicyRegistry({
      policies: [],
      time: { wallNow: () => NOW },
      observer: { policyChanged: () => {}, trouble: () => {} },
    });
    for (let version = 1; version <= 500; version++) {
      for (const name of names) registry.apply(update(document(version, version, name), { name }));
    }
    expect(registry.outcomes.applied).toBe(10_000);
    expect([...registry.policies()].map(({ name, version }) => [name, version])).toEqual(
      names.map((name) => [name, 500]),
    );
  });

  it('ignores the same version with the same content in silence, however it is put', () => {
    const long = { mode: 'deny' } as const;
    const { registry, changes } = setUp({ ...document(5, 60), overrides: { a: long, b: long } });
    registry.apply(update({ ...document(5, 60), overrides: { b: long, a: long } }));
    registry.apply(update({ ...document(5, 60), overrides: { a: long, b: long }, mode: 'enforce', lease: {} }));
    registry.apply(
      update({ ...document(5), ceiling: { rate: 3600, burst: 1, per: '1m' }, overrides: { a: long, b: long } }),
    );
    expect(changes).toEqual([]);
  });

  it.each<[string, Partial<PolicyDocument>]>([
    ['another rate', { ceiling: { rate: 2, burst: 1 } }],
    ['another tier', { local: { rate: 1, burst: 1 } }],
    ['another mode', { mode: 'shadow' }],
    ['another lease', { lease: { durationMs: 60 } }],
    ['another outage mode', { outage: { mode: 'allow' } }],
    ['another inheritance', { inheritance: 'reset' }],
    ['an override', { overrides: { a: { mode: 'deny' } } }],
  ])('keeps the first where the same version comes with %s, and reports it', (_, fields) => {
    const { registry, changes } = setUp(document(5));
    const before = registry.get('api');
    registry.apply(update({ ...document(5), ...fields }));
    expect(registry.get('api')).toBe(before);
    expect(changes).toMatchObject([{ version: 5, previousVersion: 5, outcome: 'ignored' }]);
    expect(changes[0]?.error).toBeInstanceOf(InvalidPolicyError);
    expect(changes[0]?.error?.message).toBe(
      'Expected version 5 to be one policy, got a second with other terms: publish it under a higher version. ' +
        '(policy "api")',
    );
  });

  it.each<[string, unknown, number, string]>([
    [
      'no policy',
      { name: 'api', version: 9 },
      9,
      'Expected a policy to have at least one of `local`, `ceiling`, `concurrency`, got none.',
    ],
    ['text', 'nonsense', 0, 'Expected a policy to be an object, got "nonsense".'],
    ['null', null, 0, 'Expected a policy to be an object, got null.'],
    [
      'bytes',
      new TextEncoder().encode('{"name"'),
      0,
      'Expected a policy message to be JSON in UTF-8, got 7 other bytes.',
    ],
    ['another name', document(9, 1, 'web'), 9, 'Expected the policy stored as "api" to have that name, got "web".'],
    [
      'a bad version',
      { ...document(1), version: 1.5 },
      0,
      'Expected `version` to be a whole number from 0 to 2^53 − 1',
    ],
  ])('changes nothing where it gets %s, and says why', (_, bad, version, message) => {
    const { registry, changes } = setUp(document(5));
    const before = registry.get('api');
    registry.onChange(() => expect.unreachable());
    registry.apply(update(bad));
    expect(registry.get('api')).toBe(before);
    expect([...registry.names()]).toEqual(['api']);
    expect(changes).toMatchObject([{ policy: 'api', version, previousVersion: 5, outcome: 'invalid' }]);
    expect(changes[0]?.error).toBeInstanceOf(InvalidPolicyError);
    expect(changes[0]?.error?.message).toContain(message);
  });

  it('keeps the last good policy where it was removed, reports that, and takes a newer one later', () => {
    const { registry, changes } = setUp(document(5));
    registry.apply(update(undefined));
    expect(registry.get('api')?.version).toBe(5);
    expect(changes).toMatchObject([{ version: 5, previousVersion: 5, outcome: 'removed', error: undefined }]);
    registry.apply(update(document(6)));
    expect(registry.get('api')?.version).toBe(6);
  });

  it('has nothing to say about the removal of what it never knew', () => {
    const { registry, changes } = setUp();
    registry.apply(update(undefined));
    expect(changes).toEqual([]);
  });

  it('counts how updates ended', () => {
    const { registry } = setUp(document(5));
    for (const each of [document(6), document(6), document(5), document(6, 2), 'bad', undefined]) {
      registry.apply(update(each));
    }
    expect(registry.outcomes).toEqual({ applied: 2, ignored: 2, invalid: 1, removed: 1 });
  });

  it('stops telling a listener that was taken away, once for each time it was added', () => {
    const { registry } = setUp();
    const heard: number[] = [];
    const listener = (policy: { version: number }) => heard.push(policy.version);
    const stopFirst = registry.onChange(listener);
    const stopSecond = registry.onChange(listener);
    registry.apply(update(document(1)));
    stopFirst();
    stopFirst();
    registry.apply(update(document(2)));
    stopSecond();
    registry.apply(update(document(3)));
    expect(heard).toEqual([1, 1, 2]);
  });

  it('goes on where a listener throws', () => {
    const { registry, troubles } = setUp();
    const error = new Error('from a listener');
    const heard: number[] = [];
    registry.onChange(() => {
      throw error;
    });
    registry.onChange((policy) => heard.push(policy.version));
    registry.apply(update(document(1)));
    expect(heard).toEqual([1]);
    expect(troubles).toEqual([error]);
  });

  it('ends in the same state whatever order updates arrive in and however often (C145)', () => {
    // As compare-and-set makes them: a version of a name is always the same policy.
    const good = fc
      .record({ name: fc.constantFrom('a', 'b', 'c'), version: fc.integer({ min: 0, max: 20 }) })
      .map(({ name, version }) => update(document(version, 1 + version, name), { name }));
    const bad = fc
      .constantFrom<unknown>('bad', null, undefined, {}, { name: 'a', version: 99 }, document(99, 1, 'other'))
      .chain((document) => fc.constantFrom('a', 'b').map((name) => update(document, { name })));
    const histories = fc
      .array(fc.oneof({ weight: 4, arbitrary: good }, bad), { minLength: 1, maxLength: 30 })
      .chain((updates) =>
        fc.tuple(
          fc.constant(updates),
          fc.shuffledSubarray(updates, { minLength: updates.length }),
          fc.shuffledSubarray(updates),
        ),
      );
    fc.assert(
      fc.property(histories, ([updates, shuffled, repeated]) => {
        const state = (arriving: readonly RegistryUpdate[]) => {
          const { registry } = setUp(document(0, 1, 'a'));
          for (const each of arriving) registry.apply(each);
          return Object.fromEntries(Array.from(registry.policies(), ({ name, document }) => [name, document]));
        };
        const expected: Record<string, PolicyDocument> = { a: document(0, 1, 'a') };
        for (const { name, document: given } of updates) {
          const { version } = Object(given) as PolicyDocument;
          const isGood = version !== undefined && version <= 20;
          if (isGood && version >= (expected[name]?.version ?? 0)) expected[name] = given as PolicyDocument;
        }
        expect(state(updates)).toEqual(expected);
        expect(state([...shuffled, ...repeated])).toEqual(expected);
      }),
    );
  });
});
