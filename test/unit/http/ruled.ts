import { parseDictionary, parseList } from 'structured-headers';
import type { Ruling } from '../../../src/http/index.js';
import type { Limiter, PolicyDocument } from '../../../src/index.js';
import { ManualTime } from '../../../src/testing.js';
import { limiterOf } from '../../support/limiter-under-test.js';

/** A limiter of several policies on a clock that the test moves. */
export async function limiterWith(...policies: readonly PolicyDocument[]) {
  const [first] = policies as [PolicyDocument];
  const { limiter, time, troubles } = await limiterOf(first, { policies, time: new ManualTime(1_000) });
  return { limiter, time, troubles };
}

/** What each policy says to one request of `key`. */
export function rule(limiter: Limiter, names: readonly string[], key = 'caller', cost = 1): readonly Ruling[] {
  return names.map((name) => {
    const policy = limiter.policy(name);
    return { decision: policy.decide(key, cost), policy: policy.policy, key, cost };
  });
}

type Numbers = Record<string, unknown>;

/** A structured-field list of strings, as an independent parser reads it: `{ name: { r: 3, t: 2 } }`. */
export function membersOf(field: string | undefined): Record<string, Numbers> {
  if (field === undefined) return {};
  const members = parseList(field).map(([value, parameters]) => [
    String(value),
    Object.fromEntries([...parameters].map(([name, parameter]) => [name, readable(parameter)])),
  ]);
  return Object.fromEntries(members);
}

/** A structured-field dictionary of plain items. */
export function dictionaryOf(field: string | undefined): Numbers {
  return Object.fromEntries([...parseDictionary(field ?? '')].map(([name, [value]]) => [name, value]));
}

function readable(parameter: unknown): unknown {
  return parameter instanceof ArrayBuffer ? Buffer.from(parameter).toString('base64') : parameter;
}
