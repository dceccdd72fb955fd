import fc from 'fast-check';
import {
  type LeaseCall,
  type LeaseReply,
  leaseGrace,
  MAX_AGE_US,
  partitionOf,
  type WindowCall,
} from '../../src/ceiling/ceiling-store.js';
import type { CeilingTerms, Inheritance } from '../../src/policy/policy.js';
import { MICRO } from '../../src/units.js';
import type { LedgerPair, Moment } from './ledger-pair.js';

/** Terms of every size: usual ones, few tokens, a day for one token, fractions that need long multiplication. */
const TERMS: readonly CeilingTerms[] = [
  { burst: 2_000 * MICRO, rateNum: 1_000, rateDen: 1 },
  { burst: 100 * MICRO, rateNum: 1_000, rateDen: 1 },
  { burst: 10 * MICRO, rateNum: 10, rateDen: 1 },
  { burst: 3 * MICRO, rateNum: 5, rateDen: 432_000 },
  { burst: 5_500_000, rateNum: 7_919, rateDen: 104_729 },
  { burst: 1_125_899_906_842_623, rateNum: 4_503_599_627_370_449, rateDen: 2_199_023_255_531 },
  { burst: 1_000 * MICRO, rateNum: 1_000_003, rateDen: 4_503_599_627_370_449 },
  { burst: 50_000 * MICRO, rateNum: 1_000_000, rateDen: 1 },
];
const INHERITANCES: readonly Inheritance[] = ['as-is', 'proportional', 'additive', 'reset'];
const LEASES = [50_000, 200_000, 2_000_000, 600_000_000] as const;
const HOLDERS = Array.from({ length: 6 }, (_, index) => `holder-${index}-`.padEnd(16, '0'));
/** Two of the same partition, so that they share a header, and one with a fence of its own there. */
const [FIRST, SECOND] = twoKeysOfOnePartition();
const BUCKETS = [
  { policy: 'api', key: FIRST, fence: 'api' },
  { policy: 'api', key: SECOND, fence: 'api' },
  { policy: 'api', key: FIRST, fence: `api#${FIRST}` },
  { policy: 'other', key: 'tenant', fence: 'other' },
  { policy: 'api~window', key: FIRST, fence: 'api~window', rule: 'epoch' },
  { policy: 'api~first-use', key: FIRST, fence: 'api~first-use', rule: 'first-use' },
  { policy: 'api~day', key: FIRST, fence: 'api~day', rule: 'calendar' },
  { policy: 'api~log', key: FIRST, fence: 'api~log', rule: 'log' },
  { policy: 'api~counter', key: FIRST, fence: 'api~counter', rule: 'counter' },
] as const satisfies readonly (Pick<LeaseCall, 'policy' | 'key' | 'fence'> & { rule?: WindowCall['rule'] })[];
/** Lengths of windows that go with the terms of the same place. */
const LENGTHS_US = [1_000_000, 100_000, 60_000_000, 7_777_777, 300_000, 3_600_000_000, 2_000_000, 10_000_000];
/** Forwards mostly; back within the allowance, and beyond it. */
const STEPS_US = [
  ...[0, 1, 999, 1_500, 10_000, 33_333, 100_000, 249_000, 251_000, 500_000, 1_000_000, 2_200_000, 61_000_000],
  ...[-1, -50_000, -100_000, -100_001, -5_000_000, -3_600_000_000],
];

const START = 1_800_000_000_000_000;
/** Slow buckets are kept for up to 71 years: too far to go there twice and stay below 2^53 µs. */
const FORESEEN_US = 30 * 86_400_000_000;

function twoKeysOfOnePartition(): [string, string] {
  const first = 'tenant-0';
  for (let i = 1; ; i++) {
    if (partitionOf('api', `tenant-${i}`) === partitionOf('api', first)) return [first, `tenant-${i}`];
  }
}

const share = fc.integer({ min: 0, max: 4 });
const callPlan = fc.record({
  holder: fc.nat(HOLDERS.length - 1),
  bucket: fc.nat(BUCKETS.length - 1),
  /** Quarters of what is in hand that are spent, and then given back. */
  spend: share,
  giveBack: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, share),
  /** Quarters of the burst that are said to have been spent for nothing, and how long ago at most; 0: not known. */
  refund: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, share),
  refundAge: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 20_000_000 })),
  /** Of the burst, in 64ths. */
  need: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 70 })),
  head: share,
  want: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 16 })),
  demand: fc.oneof(fc.constant(0), fc.nat(9), fc.integer({ min: 1, max: 4_000_000_000 })),
  weight: fc.oneof({ weight: 3, arbitrary: fc.constant(1) }, fc.integer({ min: 1, max: 7 })),
  lease: fc.constantFrom(...LEASES),
  terms: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: TERMS.length - 1 })),
  version: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.integer({ min: -1, max: 1 })),
  inheritance: fc.constantFrom(...INHERITANCES),
  guard: fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, fc.constantFrom(300_000, 2_120_000)),
  /** What becomes of the reply. */
  fate: fc.oneof({ weight: 5, arbitrary: fc.constant('taken' as const) }, fc.constant('lost' as const)),
  since: fc.oneof({ weight: 8, arbitrary: fc.constant(0) }, fc.integer({ min: 1, max: 10_000_000 })),
  witness: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  /** Microseconds by which the holder's idea of the store's time is off. */
  skew: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: -300_000, max: 150_000 })),
});
export type CallPlan = typeof callPlan extends fc.Arbitrary<infer T> ? T : never;

const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ calls: fc.array(callPlan, { minLength: 1, maxLength: 4 }) }) },
  { weight: 8, arbitrary: fc.record({ elapse: fc.constantFrom(...STEPS_US) }) },
  /** To the microsecond at which something ends, or may just still be believed. */
  { weight: 3, arbitrary: fc.record({ until: fc.nat(7) }) },
  { weight: 3, arbitrary: fc.record({ repeat: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ server: fc.constantFrom('', 'a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ evict: fc.nat(BUCKETS.length - 1) }) },
  { weight: 1, arbitrary: fc.record({ newHolder: fc.nat(HOLDERS.length - 1) }) },
);
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Anything that may happen to a store, in any order; `terms` are those that all begin with. */
export const history = fc.record({
  terms: fc.nat(TERMS.length - 1),
  newStore: fc.constantFrom('empty' as const, 'full' as const),
  steps: fc.array(step, { minLength: 1, maxLength: 90, size: 'max' }),
  loseAllAt: fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, fc.nat(60)),
});
export type History = typeof history extends fc.Arbitrary<infer T> ? T : never;

/** All holders want more than there is, spend all they get, and lose nothing: the ledger is worked at its limit. */
export const saturated: fc.Arbitrary<History> = fc.record({
  // Those that these turns can empty: of larger ones most is never asked for.
  terms: fc.constantFrom(0, 2),
  newStore: fc.constant('full' as const),
  loseAllAt: fc.constant(-1),
  steps: fc
    .array(fc.record({ greed: fc.integer({ min: 4, max: 32 }), elapse: fc.integer({ min: 1_000, max: 40_000 }) }), {
      minLength: 60,
      maxLength: 90,
    })
    .map((turns) => turns.flatMap(({ greed, elapse }, turn) => [{ calls: [greedy(turn, greed)] }, { elapse }])),
});

function greedy(turn: number, greed: number): CallPlan {
  const plain = {
    bucket: 0,
    giveBack: 0,
    refund: 0,
    refundAge: 0,
    head: 0,
    weight: 1,
    terms: 0,
    version: 0,
    since: 0,
    skew: 0,
  };
  const rest = {
    inheritance: 'as-is',
    fate: 'taken',
    witness: false,
    lease: 2_000_000,
    guard: 0,
    demand: 4_000_000_000,
  } as const;
  return { ...plain, ...rest, holder: turn % HOLDERS.length, spend: 4, need: greed, want: greed };
}

/** What a caller that takes it to be `now` says of a window. */
function windowOf(rule: WindowCall['rule'], length: number, now: number): WindowCall {
  const start = now - (now % length);
  return rule === 'calendar' ? { rule, length, start, end: start + length } : { rule, length, start: 0, end: 0 };
}

/** One holder's side of one bucket. */
interface Account {
  inHand: number;
  firstGivenUp: number;
  taken: number;
  incarnation: number;
  certainUntil: number;
  lastNow: number;
}

/** Plays a history on both ledgers; `compare` is given what they answered, and what they hold afterwards. */
export class Player {
  readonly #pair: LedgerPair;
  readonly #moment: Moment;
  readonly #baseTerms: number;
  readonly #accounts = new Map<string, Account>();
  readonly #sent: LeaseCall[] = [];
  readonly #versions = new Map<string, number>();
  readonly #names = [...HOLDERS];
  /** Boundaries of late: of leases, records, buckets and beliefs. */
  readonly #moments: number[] = [];
  #seq = 0;

  constructor(pair: LedgerPair, { terms, newStore }: Pick<History, 'terms' | 'newStore'>) {
    this.#pair = pair;
    this.#baseTerms = terms;
    this.#moment = { now: START, server: 'a', newStore };
  }

  /** How many calls were executed, and what was granted of all that the first bucket could give. */
  calls = 0;
  granted = 0;

  get grantedShare(): number {
    const { burst, rateNum, rateDen } = TERMS[this.#baseTerms] as CeilingTerms;
    return this.granted / (burst + ((this.#moment.now - START) / rateDen) * rateNum);
  }

  async play(step: Step, compare: (lua: unknown, model: unknown) => void): Promise<void> {
    if ('elapse' in step) this.#moment.now += step.elapse;
    else if ('until' in step) this.#moment.now = this.#moments.at(-1 - step.until) ?? this.#moment.now;
    else if ('server' in step) this.#moment.server = step.server;
    else if ('newHolder' in step) this.#names[step.newHolder] = `again-${this.#seq}-`.padEnd(16, '1');
    else if ('evict' in step) {
      const call = this.#sent.findLast(({ key, policy }) => {
        const bucket = BUCKETS[step.evict];
        return key === bucket?.key && policy === bucket.policy;
      });
      if (call) await this.#pair.loseBucket(call);
    } else if ('repeat' in step) {
      const call = this.#sent.at(-1 - step.repeat);
      if (call) await this.#execute([call], [], compare);
    } else {
      const calls = step.calls.map((plan) => this.#call(plan));
      await this.#execute(calls, step.calls, compare);
    }
  }

  async lose(): Promise<void> {
    await this.#pair.lose();
  }

  async compareRecords(compare: (lua: unknown, model: unknown) => void): Promise<void> {
    for (const call of new Map(this.#sent.map((call) => [`${call.policy}:${call.key}`, call])).values()) {
      const { lua, model } = await this.#pair.inspect(call, this.#moment.now);
      compare(lua, model);
    }
  }

  async #execute(
    calls: LeaseCall[],
    plans: readonly CallPlan[],
    compare: (lua: unknown, model: unknown) => void,
  ): Promise<void> {
    const { lua, model } = await this.#pair.execute(calls, this.#moment);
    compare(lua, model);
    this.calls += calls.length;
    for (const reply of model) if (reply.status === 'granted') this.granted += reply.granted;
    for (const [index, plan] of plans.entries()) {
      const [call, reply] = [calls[index], model[index]];
      if (!call || !reply) continue;
      this.#sent.push(call);
      if (plan.fate === 'taken') this.#take(call, reply);
    }
  }

  #account(holder: string, bucket: number): Account {
    const name = `${holder} ${bucket}`;
    const known = this.#accounts.get(name);
    if (known) return known;
    const account = {
      inHand: 0,
      firstGivenUp: 0,
      taken: 0,
      incarnation: 0,
      certainUntil: 0,
      lastNow: this.#moment.now,
    };
    this.#accounts.set(name, account);
    return account;
  }

  #call(plan: CallPlan): LeaseCall {
    const holder = this.#names[plan.holder] as string;
    const { rule, ...bucket } = { rule: undefined, ...(BUCKETS[plan.bucket] as (typeof BUCKETS)[number]) };
    const account = this.#account(holder, plan.bucket);
    const terms = TERMS[(this.#baseTerms + plan.terms) % TERMS.length] as CeilingTerms;
    const version = Math.max(0, (this.#versions.get(bucket.fence) ?? 0) + plan.version);
    this.#versions.set(bucket.fence, Math.max(version, this.#versions.get(bucket.fence) ?? 0));
    this.#seq += 1;
    const spent = Math.floor((account.inHand / 4) * plan.spend);
    const returned = Math.floor(((account.inHand - spent) / 4) * plan.giveBack);
    account.inHand -= spent + returned;
    account.taken -= returned;
    const refund = Math.floor((terms.burst / 4) * plan.refund);
    const need = Math.min(Number.MAX_SAFE_INTEGER, Math.floor((terms.burst / 64) * plan.need));
    const disown = account.firstGivenUp;
    if (disown === 0) account.firstGivenUp = this.#seq;
    const witness = plan.witness ? Math.max(0, account.taken) : 0;
    const { now } = this.#moment;
    const givesBack = returned > 0 || refund > 0 || disown > 0;
    const believes = account.inHand > 0 || givesBack || witness > 0 || plan.since > 0;
    return {
      ...bucket,
      ...terms,
      window: rule && windowOf(rule, this.#length(plan.terms), now + plan.skew),
      version,
      inheritance: plan.inheritance,
      guard: plan.guard,
      holder,
      seq: this.#seq,
      disown,
      unspent: account.inHand,
      returned,
      refund,
      refundSince: plan.refundAge > 0 ? now - plan.refundAge : 0,
      need,
      head: Math.floor((need / 4) * plan.head),
      want: Math.floor((terms.burst / 64) * plan.want),
      demand: plan.demand,
      weight: plan.weight,
      lease: plan.lease,
      sentAt: believes ? now + plan.skew : 0,
      since: plan.since > 0 ? now - plan.since : 0,
      witness,
      incarnation: witness > 0 ? account.incarnation : 0,
      certainUntil: witness > 0 ? account.certainUntil : 0,
    };
  }

  #length(terms: number): number {
    return LENGTHS_US[(this.#baseTerms + terms) % LENGTHS_US.length] as number;
  }

  #take(call: LeaseCall, reply: LeaseReply): void {
    const account = this.#account(
      call.holder,
      BUCKETS.findIndex((b) => b.key === call.key && b.fence === call.fence),
    );
    if (reply.status !== 'granted') return;
    const end = reply.now + call.lease + leaseGrace(call.lease);
    const moments = [end, end + MAX_AGE_US, reply.certainUntil, call.sentAt > 0 ? call.sentAt + MAX_AGE_US : end];
    this.#moments.push(...moments.filter((moment) => moment - reply.now < FORESEEN_US));
    if (reply.incarnation !== account.incarnation) account.taken = 0;
    account.inHand += reply.granted;
    account.taken += reply.granted;
    account.firstGivenUp = 0;
    account.incarnation = reply.incarnation;
    account.certainUntil = reply.certainUntil;
    account.lastNow = reply.now;
  }
}
