import { CeilingError, show } from '../errors.js';
import type { Inheritance } from '../policy/policy.js';
import { type GrantReply, type LeaseCall, type LeaseReply, partitionOf, type WindowCall } from './ceiling-store.js';

/** How `lua/fence.lua` counts them. */
const INHERITANCES: readonly Inheritance[] = ['as-is', 'proportional', 'additive', 'reset'];

/** The whole numbers of a call, in the order in which `lua/lease.lua` reads them, behind that of the inheritance. */
const NUMBERS = [
  'version',
  'burst',
  'rateNum',
  'rateDen',
  'seq',
  'disown',
  'unspent',
  'returned',
  'refund',
  'refundSince',
  'need',
  'head',
  'want',
  'demand',
  'weight',
  'lease',
  'sentAt',
  'since',
  'witness',
  'incarnation',
  'certainUntil',
  'guard',
] as const satisfies readonly (keyof LeaseCall)[];
const BYTES_PER_NUMBER = 8;
/** Those of a ceiling that is no token bucket, behind them: which rule it is comes first. */
const WINDOW_NUMBERS = ['length', 'start', 'end'] as const;
/** How `lua/limits.lua` counts them; 0: token bucket. */
const RULES: readonly (WindowCall['rule'] | undefined)[] = [
  undefined,
  'epoch',
  'first-use',
  'calendar',
  'log',
  'counter',
];

/** Numbers of a call that something is divided by. */
const POSITIVE: ReadonlySet<string> = new Set(['burst', 'rateNum', 'rateDen', 'weight', 'seq', 'length']);
/** Fields of a bucket's hash that are its own are shorter. */
const SHORTEST_HOLDER = 8;

/** Header and bucket of a call. The hash tag comes first, so that no `{` in a key can move it to another slot. */
export function leaseKeys(prefix: string, call: LeaseCall): [header: string, bucket: string] {
  const tag = `{${prefix}:${partitionOf(call.policy, call.key)}}`;
  return [`${tag}:h`, `${tag}:b:${call.policy}:${call.key}`];
}

/** A call as arguments of the script. Throws where it is not what {@link LeaseCall} says: Lua would take NaN as it is. */
export function leaseArguments(call: LeaseCall): [fence: string, holder: string, numbers: Buffer] {
  if (call.holder.length < SHORTEST_HOLDER) {
    throw new CeilingError(
      `Expected \`holder\` to have at least ${SHORTEST_HOLDER} characters, got ${show(call.holder)}.`,
    );
  }
  // Doubles as they are: the script reads two dozen in the time it takes to read one from text.
  const windowed = call.window ? WINDOW_NUMBERS.length + 1 : 0;
  const numbers = Buffer.allocUnsafe(BYTES_PER_NUMBER * (NUMBERS.length + 1 + windowed));
  let offset = numbers.writeDoubleBE(INHERITANCES.indexOf(call.inheritance), 0);
  for (const name of NUMBERS) offset = numbers.writeDoubleBE(checked(call[name], name), offset);
  if (call.window) {
    offset = numbers.writeDoubleBE(RULES.indexOf(call.window.rule), offset);
    for (const name of WINDOW_NUMBERS) offset = numbers.writeDoubleBE(checked(call.window[name], name), offset);
  }
  return [call.fence, call.holder, numbers];
}

function checked(value: number, name: string): number {
  if (Number.isSafeInteger(value) && value >= 0 && (value > 0 || !POSITIVE.has(name))) return value;
  const sign = POSITIVE.has(name) ? 'positive' : 'non-negative';
  throw new CeilingError(`Expected \`${name}\` of a lease call to be a ${sign} whole number, got ${show(value)}.`);
}

/** The script's answer to `count` calls, in their order. Anything that is not what it says it returns is an error. */
export function decodeLeaseReplies(answer: unknown, count: number): LeaseReply[] {
  if (!Array.isArray(answer) || answer.length !== count) {
    throw new CeilingError(`Expected ${count} replies of the lease script, got ${show(answer)}.`);
  }
  return answer.map(decodeReply);
}

const REFUSAL_LENGTH = 8;
const GRANT_LENGTH = 16;
/** With the lease that ends with its window. */
const WINDOW_GRANT_LENGTH = 17;

function decodeReply(reply: unknown): LeaseReply {
  if (!Array.isArray(reply)) throw new CeilingError(`Expected a reply of the lease script, got ${show(reply)}.`);
  const status = whole(reply, 0);
  const era: unknown = reply[3];
  const lengths = status === 0 ? [GRANT_LENGTH, WINDOW_GRANT_LENGTH] : [REFUSAL_LENGTH];
  if (status > 2 || !lengths.includes(reply.length) || typeof era !== 'string') {
    throw new CeilingError(
      `Expected a reply of the lease script, got one of status ${status} and length ${reply.length}.`,
    );
  }
  const head = {
    seq: whole(reply, 1),
    now: whole(reply, 2),
    era,
    version: whole(reply, 4),
    burst: whole(reply, 5),
    rateNum: whole(reply, 6),
    rateDen: whole(reply, 7),
  };
  if (status !== 0) return { ...head, status: status === 1 ? 'stale' : 'refused' };
  const flags = whole(reply, 13);
  return {
    ...head,
    status: 'granted',
    granted: whole(reply, 8),
    lease: reply.length === WINDOW_GRANT_LENGTH ? whole(reply, 16) : 0,
    level: whole(reply, 9),
    horizon: whole(reply, 10),
    next: whole(reply, 11),
    retry: whole(reply, 12),
    giveBack: (flags & 1) !== 0,
    conflict: (flags & 2) !== 0,
    incarnation: whole(reply, 14),
    certainUntil: whole(reply, 15),
  } satisfies GrantReply;
}

/** Numbers close to 2^53 come as text, since clients round them. */
function whole(reply: readonly unknown[], index: number): number {
  const item = reply[index];
  const value = typeof item === 'string' && /^\d{1,16}$/.test(item) ? Number(item) : item;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw new CeilingError(`Expected item ${index} of a lease reply to be a whole number, got ${show(item)}.`);
  }
  return value;
}
