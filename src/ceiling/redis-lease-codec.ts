import { CeilingError, show } from '../errors.js';
import type { Inheritance } from '../policy/policy.js';
import type { Microseconds } from '../units.js';
import { type LeaseCall, type LeaseReply, partitionOf, type WindowCall } from './ceiling-store.js';
import type { ScriptArgument } from './redis-client.js';

/** How `lua/fence.lua` counts them. */
const INHERITANCES: readonly Inheritance[] = ['as-is', 'proportional', 'additive', 'reset'];

/** The whole numbers of a call, in the order in which `lua/lease.lua` reads them. */
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
/** Of a ceiling that is no token bucket, behind them. */
const WINDOW_NUMBERS = ['length', 'start', 'end'] as const;
/** Before them: the places of fence and holder among the names, the inheritance; behind them: the rule. */
const MOST_NUMBERS = 3 + NUMBERS.length + 1 + WINDOW_NUMBERS.length;
const BYTES_PER_NUMBER = 8;
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

/**
 * Calls as arguments of the script: one of bytes, and the names that are in them by number. To Redis each argument is a
 * string to be made, hashed and swept away again; and doubles are read from it two dozen in the time of one from text.
 */
export class LeaseArguments {
  readonly #bytes: Buffer;
  readonly #view: DataView;
  readonly #names: string[] = [];
  #length = 0;

  /** @param most how many calls there will be */
  constructor(most: number) {
    this.#bytes = Buffer.allocUnsafe(most * MOST_NUMBERS * BYTES_PER_NUMBER);
    this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.length);
  }

  /** Adds a call, or throws where it is not what {@link LeaseCall} says: Lua would take NaN as it is. */
  add(call: LeaseCall): void {
    if (call.holder.length < SHORTEST_HOLDER) {
      throw new CeilingError(
        `Expected \`holder\` to have at least ${SHORTEST_HOLDER} characters, got ${show(call.holder)}.`,
      );
    }
    const { window } = call;
    let at = this.#length;
    at = this.#put(at, this.#nameOf(call.fence));
    at = this.#put(at, this.#nameOf(call.holder));
    at = this.#put(at, INHERITANCES.indexOf(call.inheritance));
    for (const name of NUMBERS) at = this.#put(at, checked(call[name], name));
    at = this.#put(at, window ? RULES.indexOf(window.rule) : 0);
    if (window) for (const name of WINDOW_NUMBERS) at = this.#put(at, checked(window[name], name));
    this.#length = at;
  }

  get list(): ScriptArgument[] {
    return [this.#bytes.subarray(0, this.#length), ...this.#names];
  }

  #put(at: number, value: number): number {
    this.#view.setFloat64(at, value, true);
    return at + BYTES_PER_NUMBER;
  }

  /** Names are few: one limiter holds all, under as many fences as it has policies and overrides. */
  #nameOf(name: string): number {
    const known = this.#names.indexOf(name);
    return known >= 0 ? known : this.#names.push(name) - 1;
  }
}

function checked(value: number, name: string): number {
  if (Number.isSafeInteger(value) && value >= 0 && (value > 0 || !POSITIVE.has(name))) return value;
  const sign = POSITIVE.has(name) ? 'positive' : 'non-negative';
  throw new CeilingError(`Expected \`${name}\` of a lease call to be a ${sign} whole number, got ${show(value)}.`);
}

const STATUSES = ['granted', 'stale', 'refused'] as const;
/** Of each reply, before its era, which has one byte more for its length. */
const REPLY_BYTES = 15 * BYTES_PER_NUMBER + 1;

/** The script's answer to `count` calls, in their order. Anything that is not what it says it returns is an error. */
export function decodeLeaseReplies(answer: unknown, count: number): LeaseReply[] {
  if (!Buffer.isBuffer(answer)) throw unreadable(show(answer));
  const view = new DataView(answer.buffer, answer.byteOffset, answer.length);
  const cutOff = () => unreadable(`${answer.length} bytes`);
  if (answer.length < BYTES_PER_NUMBER) throw cutOff();
  const now = whole(view, 0);
  const replies: LeaseReply[] = [];
  let at = BYTES_PER_NUMBER;
  for (let i = 0; i < count; i++) {
    const eraAt = at + REPLY_BYTES;
    const end = eraAt <= answer.length ? eraAt + view.getUint8(eraAt - 1) : Number.POSITIVE_INFINITY;
    if (end > answer.length) throw cutOff();
    replies.push(decodeReply(view, at, now, answer.toString('latin1', eraAt, end)));
    at = end;
  }
  if (at !== answer.length) throw cutOff();
  return replies;
}

function decodeReply(view: DataView, at: number, now: Microseconds, era: string): LeaseReply {
  const number = (index: number): number => whole(view, at + index * BYTES_PER_NUMBER);
  const status = STATUSES[number(0)];
  if (!status) throw unreadable(`status ${number(0)}`);
  const seq = number(1);
  const version = number(2);
  const burst = number(3);
  const rateNum = number(4);
  const rateDen = number(5);
  if (status !== 'granted') return { status, seq, now, era, version, burst, rateNum, rateDen };
  const flags = number(11);
  return {
    status,
    seq,
    now,
    era,
    version,
    burst,
    rateNum,
    rateDen,
    granted: number(6),
    level: number(7),
    horizon: number(8),
    next: number(9),
    retry: number(10),
    giveBack: (flags & 1) !== 0,
    conflict: (flags & 2) !== 0,
    incarnation: number(12),
    certainUntil: number(13),
    lease: number(14),
  };
}

function whole(view: DataView, at: number): number {
  const value = view.getFloat64(at, true);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw unreadable(show(value));
}

function unreadable(got: string): CeilingError {
  return new CeilingError(`Expected replies of the lease script, got ${got}.`);
}
