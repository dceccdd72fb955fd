import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { CeilingStore, GrantReply, LeaseCall, LeaseReply } from '../../src/ceiling/ceiling-store.js';
import { MICRO } from '../../src/units.js';

/** A store to be held against the contract, and the power to let time pass for it. */
export interface StoreUnderTest {
  store: CeilingStore;
  /** Microseconds. The store's clock may be ahead of it by what the test itself takes. */
  pass(us: number): Promise<void>;
  close(): Promise<void>;
}

/** Slow enough that what is refilled while a test runs is less than a token: one token a second. */
export const SLOW = { burst: 10 * MICRO, rateNum: 1, rateDen: 1 };
const SECOND = 1_000_000;

let serial = 0;

/** A call of a holder and a bucket of its own, unless told otherwise; asks for nothing. */
export function leaseCall(changes: Partial<LeaseCall> = {}): LeaseCall {
  serial += 1;
  const policy = changes.policy ?? 'api';
  return {
    policy,
    key: `key-${serial}`,
    fence: policy,
    version: 0,
    ...SLOW,
    inheritance: 'as-is',
    guard: 0,
    holder: `holder-${serial}-`.padEnd(16, '-'),
    seq: serial,
    disown: 0,
    unspent: 0,
    returned: 0,
    refund: 0,
    refundSince: 0,
    need: 0,
    head: changes.need ?? 0,
    want: 0,
    demand: 0,
    weight: 1,
    lease: 2 * SECOND,
    sentAt: 0,
    since: 0,
    witness: 0,
    incarnation: 0,
    certainUntil: 0,
    ...changes,
  };
}

/** One holder's calls about one bucket, each with the next seq and the store time it knows from the reply before. */
class Caller {
  readonly #store: CeilingStore;
  readonly #fixed: Partial<LeaseCall>;
  #now = 0;

  constructor(store: CeilingStore, fixed: Partial<LeaseCall>) {
    const { key, holder } = leaseCall();
    this.#store = store;
    this.#fixed = { key, holder, ...fixed };
  }

  /** Another holder of the same bucket. */
  another(): Caller {
    return new Caller(this.#store, { ...this.#fixed, holder: leaseCall().holder });
  }

  call(changes: Partial<LeaseCall> = {}): LeaseCall {
    const { seq } = leaseCall();
    const call = leaseCall({ ...this.#fixed, seq, ...changes });
    const { unspent, returned, refund, disown, witness, since } = call;
    const believes = unspent > 0 || returned > 0 || refund > 0 || disown > 0 || witness > 0 || since > 0;
    return believes && changes.sentAt === undefined ? { ...call, sentAt: this.#now } : call;
  }

  async send(call: LeaseCall): Promise<LeaseReply> {
    const reply = (await this.#store.lease([call])[0]) as LeaseReply;
    this.#now = reply.now;
    return reply;
  }

  async ask(changes: Partial<LeaseCall> = {}): Promise<GrantReply> {
    const reply = await this.send(this.call(changes));
    expect(reply.status).toBe('granted');
    return reply as GrantReply;
  }

  /** Whether so many tokens are there for a holder that comes now. It gives them back at once. */
  async has(tokens: number, changes: Partial<LeaseCall> = {}): Promise<boolean> {
    const { granted } = await this.another().#borrow({ ...changes, need: tokens * MICRO });
    return granted >= tokens * MICRO;
  }

  async #borrow(changes: Partial<LeaseCall>): Promise<GrantReply> {
    const reply = await this.ask(changes);
    await this.ask({ ...changes, need: 0, returned: reply.granted });
    return reply;
  }
}

/** What every {@link CeilingStore} does. `open` gives one whose data starts full. */
export function describeCeilingStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`the ceiling store (${name})`, () => {
    let under: StoreUnderTest;
    let store: CeilingStore;
    beforeAll(async () => {
      under = await open();
      store = under.store;
    });
    afterEach(() => expect(store.ready).toBe(true));
    afterAll(() => under.close());

    function caller(fixed: Partial<LeaseCall> = {}): Caller {
      return new Caller(store, fixed);
    }

    it('grants what is needed out of a full bucket, and no more than there is (C161)', async () => {
      const one = caller();
      expect((await one.ask({ need: 7 * MICRO })).granted).toBe(7 * MICRO);
      expect((await one.another().ask({ need: 3 * MICRO })).granted).toBe(3 * MICRO);
      const unmet = await one.another().ask({ need: 2 * MICRO });
      expect(unmet.granted).toBe(0);
      expect(unmet.retry).toBeGreaterThan(SECOND);
      expect(unmet.retry).toBeLessThanOrEqual(2 * SECOND + 1);
    });

    it('grants a part of a batch that is larger than what is there, and than the burst (C161)', async () => {
      const one = caller();
      await one.ask({ need: 3 * MICRO });
      const part = await one.another().ask({ need: MICRO, want: 50 * MICRO });
      expect(part.granted).toBeGreaterThanOrEqual(MICRO);
      expect(part.granted).toBeLessThanOrEqual(7 * MICRO);
      // However often that much is asked for, what is needed is granted for as long as it is there.
      for (let left = 7 * MICRO - part.granted; left >= MICRO; ) {
        const next = await one.another().ask({ need: MICRO, want: 50 * MICRO });
        expect(next.granted).toBeGreaterThanOrEqual(MICRO);
        left -= next.granted;
        expect(left).toBeGreaterThanOrEqual(0);
      }
    });

    it('keeps apart what it grants two holders in one moment: each is charged, and can be given back (C104)', async () => {
      const terms = { burst: 20 * MICRO, rateNum: 1, rateDen: 1_000 };
      const one = caller(terms);
      const holders = [one, one.another()];
      for (const holder of holders) await holder.ask();
      // Each says what it has been granted before.
      const calls = Array.from({ length: 10 }, (_, i) => i * MICRO).flatMap((unspent) =>
        holders.map((holder) => holder.call({ need: MICRO, unspent })),
      );
      const replies = await Promise.all(store.lease(calls));
      expect(new Set(replies.map(({ seq }, index) => `${calls[index]?.holder} ${seq}`)).size).toBe(20);
      expect(replies.map((reply) => (reply as GrantReply).granted)).toEqual(Array(20).fill(MICRO));
      expect(await one.has(1)).toBe(false);
      let back = 0;
      for (let left = 9; left >= 0; left--) {
        for (const holder of holders) {
          await holder.ask({ unspent: left * MICRO, returned: MICRO });
          back += 1;
          expect(await one.has(back)).toBe(true);
          expect(await one.has(back + 1)).toBe(false);
        }
      }
    });

    it('answers in the terms of the call, with its seq and the time of the store', async () => {
      const one = caller();
      const call = one.call({ need: MICRO });
      const first = await one.send(call);
      const second = await one.ask();
      expect(first).toMatchObject({ seq: call.seq, version: 0, ...SLOW });
      expect(second).toMatchObject({ era: first.era, incarnation: (first as GrantReply).incarnation });
      expect(second.now).toBeGreaterThanOrEqual(first.now);
      expect(second.certainUntil).toBeGreaterThan(second.now);
    });

    it('answers many calls at once, each with its own reply, in order', async () => {
      const calls = Array.from({ length: 150 }, (_, index) => leaseCall({ need: (1 + (index % 10)) * MICRO }));
      const replies = await Promise.all(store.lease(calls));
      expect(replies.map(({ seq }) => seq)).toEqual(calls.map(({ seq }) => seq));
      expect(replies.map((reply) => (reply as GrantReply).granted)).toEqual(calls.map(({ need }) => need));
    });

    it('keeps the place of tokens in a wallet: T is capped by B − O, not by B (rule 1)', async () => {
      const one = caller({ lease: 60 * SECOND });
      await one.ask({ need: 10 * MICRO });
      await under.pass(15 * SECOND);
      expect(await one.has(1)).toBe(false);
    });

    it('refills the place of what is reported as spent, and of nothing else', async () => {
      const one = caller({ lease: 60 * SECOND });
      await one.ask({ need: 10 * MICRO });
      await one.ask({ unspent: 4 * MICRO });
      await under.pass(15 * SECOND);
      expect(await one.has(7)).toBe(false);
      expect(await one.has(6)).toBe(true);
    });

    it('gives what is returned to the next who asks (C151)', async () => {
      const one = caller();
      await one.ask({ need: 10 * MICRO });
      await one.ask({ unspent: 2 * MICRO, returned: 5 * MICRO });
      expect(await one.has(6)).toBe(false);
      expect(await one.has(5)).toBe(true);
    });

    it('takes a refund of what was spent, once, and never more than there is room for (C173)', async () => {
      const one = caller();
      await one.ask({ need: 8 * MICRO });
      await one.ask({ unspent: 0 });
      const call = one.call({ refund: 3 * MICRO });
      await one.send(call);
      await one.send(call);
      expect(await one.has(6)).toBe(false);
      expect(await one.has(5)).toBe(true);

      const other = caller();
      await other.ask({ need: 6 * MICRO });
      // Six are out, so there is room for four.
      await other.ask({ unspent: 6 * MICRO, refund: 9 * MICRO });
      expect(await other.another().has(5)).toBe(false);
      expect(await other.another().has(4)).toBe(true);
    });

    it('takes no refund of a holder that it does not know (rule 7)', async () => {
      const one = caller();
      await one.ask({ need: 10 * MICRO });
      const { now } = await one.ask({ unspent: 0 });
      await one.another().ask({ refund: 10 * MICRO, sentAt: now });
      expect(await one.has(1)).toBe(false);
    });

    it('answers a repeated seq with the same reply, and nothing changes (rule 2)', async () => {
      const one = caller();
      const call = one.call({ need: 4 * MICRO });
      const first = await one.send(call);
      const again = await one.send(call);
      expect(again).toEqual({ ...first, now: again.now });
      expect(await one.has(6)).toBe(true);
    });

    it('does not return twice what a repeated call returns (rule 2)', async () => {
      const one = caller();
      await one.ask({ need: 10 * MICRO });
      const call = one.call({ unspent: 5 * MICRO, returned: 2 * MICRO });
      await one.send(call);
      await one.send(call);
      expect(await one.has(3)).toBe(false);
      expect(await one.has(2)).toBe(true);
    });

    it('changes nothing for an older seq, and says that it is stale (rules 2 and 10)', async () => {
      const one = caller();
      const older = one.call({ need: 6 * MICRO });
      const newer = await one.ask({ need: 3 * MICRO });
      expect(await one.send(older)).toMatchObject({ status: 'stale', seq: older.seq, era: newer.era });
      expect(await one.has(7)).toBe(true);
    });

    it('does not pay the stored reply of one holder out to another (rule 3)', async () => {
      const one = caller();
      const call = one.call({ need: 10 * MICRO });
      await one.send(call);
      const { holder } = one.another().call();
      const restarted = await one.send({ ...call, holder });
      expect(restarted).toMatchObject({ status: 'granted', granted: 0 });
    });

    it('takes a lost grant back when it is disowned, at most once (rule 4)', async () => {
      const one = caller();
      await one.ask({ need: 2 * MICRO });
      const lost = one.call({ unspent: 2 * MICRO, need: 5 * MICRO });
      await one.send(lost);
      expect(await one.has(4)).toBe(false);
      // Said again until a reply is taken: the grants of the calls that say it are none.
      for (let i = 0; i < 3; i++) await one.send(one.call({ unspent: 2 * MICRO, disown: lost.seq }));
      expect(await one.has(9)).toBe(false);
      expect(await one.has(8)).toBe(true);
    });

    it('leaves a grant that nobody disowns where it is (rule 4)', async () => {
      const one = caller();
      await one.ask({ need: 8 * MICRO });
      // It holds nothing: all was spent, and spent stays spent.
      await one.ask({ unspent: 0 });
      expect(await one.has(3)).toBe(false);
    });

    it('ends a lease after its end and its grace, as spent (rule 5)', async () => {
      const one = caller({ lease: 4 * SECOND });
      await one.ask({ need: 10 * MICRO });
      // Over for the holder, but not yet for the store: nothing refills.
      await under.pass(4.03 * SECOND);
      expect(await one.has(1)).toBe(false);
      await under.pass(0.2 * SECOND);
      expect(await one.has(1)).toBe(false);
      await under.pass(2.2 * SECOND);
      expect(await one.has(2)).toBe(true);
      expect(await one.has(4)).toBe(false);
    });

    it('refuses what is too old or from the future, if it carries anything to believe (rule 7)', async () => {
      const one = caller();
      const { now, era } = await one.ask({ need: 10 * MICRO });
      for (const sentAt of [now - SECOND, now + SECOND]) {
        for (const belief of [
          { unspent: 1 },
          { returned: 1 },
          { refund: 1 },
          { disown: 1 },
          { witness: 1 },
          { since: 1 },
        ]) {
          const call = one.call({ ...belief, sentAt });
          const refusal = await one.send(call);
          expect(refusal).toMatchObject({ status: 'refused', seq: call.seq, era });
          expect(refusal.now).toBeGreaterThanOrEqual(now);
        }
      }
      expect((await one.send(one.call({ sentAt: now - SECOND }))).status).toBe('granted');
      expect(await one.has(1)).toBe(false);
    });

    it('ignores what a holder returns that it has no record of (rule 7, C94)', async () => {
      const one = caller();
      const { now } = await one.ask({ need: 10 * MICRO });
      await one.another().ask({ returned: 10 * MICRO, sentAt: now });
      expect(await one.has(1)).toBe(false);
    });

    it('does not pay again for the time in which tokens sat in a wallet (rule 8)', async () => {
      const one = caller({ lease: SECOND });
      await one.ask({ need: 10 * MICRO });
      // The bucket is asked next long after the lease ended: in all that time there was no room to refill.
      await under.pass(9 * SECOND);
      expect(await one.has(1)).toBe(false);
    });

    it('lets a newer policy take over at once, and tells older callers (rule 9)', async () => {
      const policy = 'takes-over';
      const one = caller({ policy, fence: policy });
      await one.ask({ version: 1 });
      const newer = { version: 2, burst: 3 * MICRO };
      expect(await one.another().ask({ ...newer, need: 3 * MICRO })).toMatchObject({ granted: 3 * MICRO, ...newer });
      expect(await one.another().ask({ version: 1, need: MICRO })).toMatchObject({
        granted: 0,
        conflict: false,
        ...newer,
      });
    });

    it('keeps the terms when the bucket is long gone (rule 9)', async () => {
      const policy = 'outlives';
      const one = caller({ policy, fence: policy });
      const newer = { version: 2, burst: 3 * MICRO };
      const { incarnation } = await one.ask({ ...newer, need: MICRO });
      await under.pass(100 * SECOND);
      const stale = await one.another().ask({ version: 1, need: 10 * MICRO });
      expect(stale).toMatchObject(newer);
      expect(stale.granted).toBeLessThanOrEqual(3 * MICRO);
      expect(stale.incarnation).toBeGreaterThan(incarnation);
    });

    it('holds to the stricter of two terms under one version, and says so', async () => {
      const policy = 'conflict';
      const one = caller({ policy, fence: policy });
      expect((await one.ask()).conflict).toBe(false);
      expect(await one.another().ask({ burst: 5 * MICRO })).toMatchObject({ conflict: true, burst: 5 * MICRO });
      expect(await one.ask()).toMatchObject({ conflict: true, burst: 5 * MICRO });
      expect(await one.has(6)).toBe(false);
    });

    it('writes nothing of the bucket for a call it refuses, though the fence may move (rule 10)', async () => {
      const policy = 'refused';
      const one = caller({ policy, fence: policy });
      const before = await one.ask({ need: 2 * MICRO });
      const newer = { version: 1, burst: 4 * MICRO };
      const refused = one.call({ unspent: MICRO, returned: MICRO, sentAt: before.now - SECOND, ...newer });
      expect(await one.send(refused)).toMatchObject({ status: 'refused', ...newer });
      // Two of four are still out, and its seq has not been used up.
      expect(await one.has(3, newer)).toBe(false);
      expect(await one.has(2, newer)).toBe(true);
      expect(await one.send({ ...refused, sentAt: before.now })).toMatchObject({ status: 'granted' });
      expect(await one.has(3, newer)).toBe(true);
    });

    it('keeps a bucket for as long as it differs from an untouched one (rule 11, C97)', async () => {
      const one = caller({ lease: 60 * SECOND });
      const granted = await one.ask({ need: 10 * MICRO });
      // Lease end, and then the time to refill what was out.
      expect(granted.certainUntil - granted.now).toBeGreaterThanOrEqual(70 * SECOND);
      await under.pass(69 * SECOND);
      const { incarnation } = await one.another().ask();
      expect(incarnation).toBe(granted.incarnation);
    });

    it('is full, and another, after it was gone', async () => {
      const one = caller({ lease: SECOND });
      const { incarnation, certainUntil, now } = await one.ask({ need: 10 * MICRO });
      await under.pass(certainUntil - now + SECOND);
      const anew = await one.another().ask({ need: 10 * MICRO });
      expect(anew.granted).toBe(10 * MICRO);
      expect(anew.incarnation).toBeGreaterThan(incarnation);
    });

    it('refills slow buckets however often it is asked (rule 12)', async () => {
      const policy = 'daily';
      const one = caller({ policy, fence: policy, burst: MICRO, rateNum: 5, rateDen: 432_000 });
      expect((await one.ask({ need: MICRO })).granted).toBe(MICRO);
      await one.ask();
      for (let hour = 1; hour < 24; hour++) {
        await under.pass(3_600 * SECOND);
        expect(await one.has(1)).toBe(false);
      }
      await under.pass(3_601 * SECOND);
      expect(await one.has(1)).toBe(true);
    });

    it('charges an outage once for the whole fleet', async () => {
      const one = caller();
      const { now } = await one.ask();
      await under.pass(4 * SECOND);
      const later = await one.ask();
      await one.ask({ since: now });
      await one.another().ask({ since: now, sentAt: later.now });
      // Ten, less four seconds' worth, once.
      expect(await one.has(7)).toBe(false);
      expect(await one.has(5)).toBe(true);
    });

    it('gives a fixed window’s tokens once, until the next one, and no lease that outlives it', async () => {
      const window = { rule: 'first-use', length: 100 * SECOND, start: 0, end: 0 } as const;
      const one = caller({ policy: 'api~first-use', fence: 'api~first-use', window });
      const first = await one.ask({ need: 10 * MICRO });
      expect([first.granted, first.lease]).toEqual([10 * MICRO, 0]);
      await under.pass(90 * SECOND);
      const unmet = await one.ask({ need: MICRO, lease: 60 * SECOND });
      expect(unmet.granted).toBe(0);
      expect(unmet.retry).toBeLessThanOrEqual(10 * SECOND);
      expect(unmet.retry).toBeGreaterThan(8 * SECOND);
      expect(unmet.lease).toBeLessThan(10 * SECOND);
      expect(unmet.lease).toBeGreaterThan(0);
      await under.pass(11 * SECOND);
      expect((await one.ask({ need: 10 * MICRO })).granted).toBe(10 * MICRO);
    });

    it('refuses a call that says another window of the calendar than its clock is in, unless one is under way', async () => {
      const one = caller({ policy: 'api~day', fence: 'api~day' });
      const windowAt = (now: number) =>
        ({ rule: 'calendar', length: 100, start: now - 1, end: now + 100 * SECOND }) as const;
      const refused = await one.send(one.call({ need: MICRO, window: windowAt(1) }));
      expect(refused.status).toBe('refused');
      const granted = await one.ask({ need: MICRO, window: windowAt(refused.now) });
      expect(granted.granted).toBe(MICRO);
      expect((await one.ask({ need: MICRO, window: windowAt(1) })).granted).toBe(MICRO);
    });

    it('gives a log’s tokens back when what was reported as spent is a window old', async () => {
      const window = { rule: 'log', length: 100 * SECOND, start: 0, end: 0 } as const;
      const one = caller({ policy: 'api~log', fence: 'api~log', window });
      await one.ask({ need: 6 * MICRO });
      await one.ask();
      await under.pass(50 * SECOND);
      await one.ask({ need: 4 * MICRO });
      const unmet = await one.ask({ need: 3 * MICRO });
      expect(unmet.granted).toBe(0);
      expect(unmet.retry).toBeLessThanOrEqual(50 * SECOND);
      expect(unmet.retry).toBeGreaterThan(48 * SECOND);
      await under.pass(51 * SECOND);
      expect((await one.ask({ need: 7 * MICRO })).granted).toBe(0);
      expect((await one.ask({ need: 6 * MICRO })).granted).toBe(6 * MICRO);
    });

    it('counts two windows, of the older the part that one of now still covers', async () => {
      const length = 1_000 * SECOND;
      const window = { rule: 'counter', length, start: 0, end: 0 } as const;
      const one = caller({ policy: 'api~counter', fence: 'api~counter', window });
      const { now } = await one.ask({ need: 10 * MICRO });
      await one.ask();
      // A quarter into the next window three quarters of them still count.
      await under.pass(length - (now % length) + length / 4);
      expect((await one.ask({ need: 3 * MICRO })).granted).toBe(0);
      expect((await one.ask({ need: 2 * MICRO })).granted).toBe(2 * MICRO);
    });

    it('counts who is alive in a group, and forgets who is not (C74)', async () => {
      expect(await store.heartbeat('group', 'one')).toBe(1);
      expect(await store.heartbeat('group', 'two')).toBe(2);
      await under.pass(20 * SECOND);
      expect(await store.heartbeat('group', 'one')).toBe(2);
      await under.pass(20 * SECOND);
      expect(await store.heartbeat('group', 'one')).toBe(1);
      expect(await store.heartbeat('another', 'one')).toBe(1);
    });
  });
}
