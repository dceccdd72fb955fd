import type { Account } from '../lease/account.js';
import type { Keeper } from '../lease/keeper.js';
import { type Block, type BlockOptions, checkBlock, leftOf } from '../mark/block.js';
import type { MarkDesk } from '../mark/mark-desk.js';
import type { MarkedKey } from '../mark/marked-key.js';
import type { MarkedKeys } from '../mark/marked-keys.js';
import type { Policy } from '../policy/policy.js';
import type { Seat } from '../seat/seat.js';
import type { SeatDesk } from '../seat/seat-desk.js';
import type { PolicyGauges } from '../telemetry/observer.js';
import { MICRO, type Milliseconds, type Tokens } from '../units.js';
import { type AcquireOptions, checkEnterOptions, type EnterOptions } from './acquire-options.js';
import { checkKey } from './check-key.js';
import type { Decision } from './decision.js';
import { KeyHandle } from './key-handle.js';
import type { KeyState } from './key-state.js';
import { KeyTable, type KeyTableParts } from './key-table.js';
import { PLAINLY, type PlainPath } from './plain-path.js';
import type { PolicyState } from './policy-state.js';
import { Teller, type TellerParts } from './teller.js';

// Here, so that they are constants to the compiler, which those of another module are not.
const { allowed: ALLOWED, unsure: UNSURE } = PLAINLY;

/** What a policy's limiter is made of. */
export interface PolicyLimiterParts extends TellerParts, KeyTableParts {
  /** Where seats are counted, if anybody has asked for one. */
  readonly desk: () => SeatDesk | undefined;
  readonly openDesk: () => Promise<SeatDesk>;
  readonly marked: MarkedKeys;
  /** Where keys are marked, if others can, or anybody here has. */
  readonly marks: () => MarkDesk | undefined;
  readonly openMarks: () => Promise<MarkDesk>;
}

/**
 * One policy's rate limiter.
 *
 * | verb         | when there is no token                                                                       |
 * | ------------ | -------------------------------------------------------------------------------------------- |
 * | `tryAcquire` | `false`, at once: never I/O. The first touch of a key with a remote ceiling is denied "cold" |
 * | `decide`     | the same, as a {@link Decision} that says why and until when                                  |
 * | `acquire`    | waits for one answer of the ceiling store, or for tokens up to `maxWaitMs`                    |
 * | `enter`      | the same for a seat among those in flight, which is kept until it is released                 |
 *
 * Request handlers should use `acquire`: a key that is asked for the first time then costs a round trip, not a denial.
 * Whoever asks for one key again and again can get a handle of it from `key`, which has the same verbs.
 */
export class PolicyLimiter {
  readonly #owner: PolicyState;
  readonly #keeper: Keeper;
  /** @internal */
  readonly teller: Teller;
  /** @internal */
  readonly keys: KeyTable;
  readonly #desk: () => SeatDesk | undefined;
  readonly #openDesk: () => Promise<SeatDesk>;
  readonly #marked: MarkedKeys;
  readonly #marks: () => MarkDesk | undefined;
  readonly #openMarks: () => Promise<MarkDesk>;
  readonly #plain: PlainPath;

  /** @internal Made by `createLimiter`. */
  constructor(parts: PolicyLimiterParts) {
    this.#owner = parts.owner;
    this.#keeper = parts.keeper;
    this.keys = new KeyTable(parts);
    this.teller = new Teller(parts, this.keys);
    this.#plain = this.teller.plain;
    this.#desk = parts.desk;
    this.#openDesk = parts.openDesk;
    this.#marked = parts.marked;
    this.#marks = parts.marks;
    this.#openMarks = parts.openMarks;
  }

  /** The policy in force now. */
  get policy(): Policy {
    return this.#owner.policy;
  }

  /**
   * A handle of `key`, whose calls need not look it up: worth it for one that is asked for thousands of times a second.
   * The bucket is the same as by name.
   *
   * @param key non-empty, at most 512 bytes of UTF-8
   * @throws {InvalidKeyError}
   */
  key(key: string): KeyHandle {
    checkKey(key);
    return new KeyHandle(key, this);
  }

  /**
   * Takes `cost` tokens from every tier of `key` if all of them have it, and nothing otherwise. Never waits.
   *
   * @param key non-empty, at most 512 bytes of UTF-8
   * @param cost positive, at most six decimals; default 1
   * @throws {InvalidKeyError} {@link InvalidCostError} {@link CostAboveBurstError} {@link ClosedError}
   */
  tryAcquire(key: string, cost: Tokens = 1): boolean {
    const micro = this.teller.micro(key, cost);
    const now = this.#plain.now();
    const slot = this.keys.slotOf(key);
    const plainly = slot === undefined ? UNSURE : this.#plain.settle(slot, cost, micro);
    if (plainly === ALLOWED) return true;
    if (plainly !== UNSURE && this.#plain.denies(plainly, slot as number, micro)) return false;
    return this.teller.tryAcquire(this.keys.open(key, slot, now), cost, micro, now);
  }

  /** As {@link tryAcquire}, answered with what to do next. */
  decide(key: string, cost: Tokens = 1): Decision {
    return this.teller.decide(key, cost, this.keys);
  }

  /**
   * Takes `cost` tokens from every tier, waiting where that can help: for one answer of the ceiling store where this
   * instance has nothing in hand, or for tokens as long as `maxWaitMs` allows. First come, first served for each key.
   * Nothing is charged while it waits; a wait that can't end in time is refused at once.
   *
   * @throws as {@link tryAcquire}; rejects with the signal's reason where it is aborted first
   */
  acquire(key: string, options?: AcquireOptions): Promise<Decision> {
    return this.teller.acquire(key, options, this.keys);
  }

  /**
   * Takes a seat among those in flight for `key`, of which the policy's `concurrency` allows a number over the whole
   * fleet, and keeps it until it is released: `using seat = await api.enter(key); if (!seat.allowed) …`. Charges no
   * tokens. A policy without `concurrency` has seats for everybody.
   *
   * @throws {InvalidKeyError} {@link InvalidOptionError}; rejects with the signal's reason where it is aborted first
   */
  async enter(key: string, options?: EnterOptions): Promise<Seat> {
    const patience = checkEnterOptions(options);
    checkKey(key);
    patience.signal?.throwIfAborted();
    const desk = this.#desk() ?? (await this.#openDesk());
    return desk.enter(this.#owner, key, patience);
  }

  /**
   * Blocks a key for the whole fleet: nothing passes until the end, and whoever asks is told when that is. It holds here
   * at once, and elsewhere as soon as it is heard of. A key that is blocked already stays so for no shorter than it was.
   *
   * With several lengths they are a ladder: each block of a key that is not blocked now takes the next one, and the last
   * again and again, until the key's place is forgotten.
   *
   * @param forMs ms, positive, up to ten years; `Infinity`: until it is unblocked. Or 1 to 32 of them, in their order
   * @returns for how long it is blocked now
   * @throws {InvalidKeyError} {@link InvalidOptionError} {@link ClosedError}; {@link CeilingError} where the store could
   * not be told: it then holds here only, of a ladder its first step
   */
  async block(key: string, forMs: Milliseconds | readonly Milliseconds[], options?: BlockOptions): Promise<Block> {
    checkKey(key);
    const terms = checkBlock(forMs, options);
    const marked = this.#marked.open(this.policy.name, this.#owner.nameOf(key));
    const [first] = terms.steps as [number];
    this.#marked.hold(marked, Math.max(marked.end, this.teller.now() + leftOf(first, 0)));
    const marks = this.#marks() ?? (await this.#openMarks());
    return marks.block(marked, terms);
  }

  /**
   * Ends a block for the whole fleet; the key's place on its ladder stays. Whoever waits for its end is served.
   *
   * @throws {InvalidKeyError} {@link ClosedError}; {@link CeilingError} where the store could not be told
   */
  async unblock(key: string): Promise<void> {
    checkKey(key);
    const marked = this.#lift(key, false);
    const marks = this.#marks() ?? (await this.#openMarks());
    return marks.unblock(marked);
  }

  /**
   * Makes a key as if it had never been asked for, for the whole fleet: its buckets are full, it is not blocked, and its
   * place on a ladder is forgotten. Tokens that are out on lease stay so, and seats taken. Admits at most one burst more
   * in windows that span it.
   *
   * @throws {InvalidKeyError} {@link ClosedError}; {@link CeilingError} where the store could not be told
   */
  async reset(key: string): Promise<void> {
    checkKey(key);
    const marked = this.#lift(key, true);
    const marks = this.#marks() ?? (await this.#openMarks());
    return marks.reset(marked, async () => {
      const { account } = this.keys.find(key, this.teller.now(), true);
      if (account) await this.#keeper.refill(account);
    });
  }

  #lift(key: string, reset: boolean): MarkedKey {
    const marked = this.#marked.open(this.policy.name, this.#owner.nameOf(key));
    this.#marked.hold(marked, Number.NEGATIVE_INFINITY, reset);
    return marked;
  }

  /** @internal */
  accounts(busyOnly?: boolean): Iterable<Account> {
    return this.keys.accounts(busyOnly);
  }

  /** @internal Woken for a key: a bucket has refilled, or a deadline has come. */
  woken(state: KeyState): void {
    this.teller.room.serve(state, false, this.teller.now());
  }

  /** @internal The store has answered for an account, or can't. */
  settled(account: Account): void {
    const state = this.keys.peek(account.key);
    if (state?.account === account) this.teller.room.answered(state, this.teller.now());
  }

  /** @internal Something has been said about a key; `reset`: that it is to be as if it had never been asked for. */
  marked(name: string, reset: boolean): void {
    const now = this.teller.now();
    const key = this.keys.keyOf(name);
    const state = key === undefined ? undefined : this.keys.mark(key, reset, now);
    if (state) this.teller.room.serve(state, true, now);
    if (state) this.teller.paced?.changed(state, now);
    this.#desk()?.marked(this.policy.name, name);
  }

  /** @internal A newer version is in force: whoever holds tokens or waits must hear of it; other keys at their next call. */
  replace(policy: Policy): void {
    const now = this.teller.now();
    this.#owner.replace(policy, now);
    this.teller.adopt();
    this.#desk()?.changed(policy.name);
    this.keys.replaced(now);
    for (const state of this.keys.busy()) {
      if (state.waiters || state.pace || (state.account && !state.account.idle)) this.keys.refresh(state, now);
      this.teller.room.serve(state, true, now);
      this.teller.paced?.changed(state, now);
    }
  }

  /** @internal */
  gauges(): PolicyGauges {
    const now = this.teller.now();
    const { policy } = this.#owner;
    return {
      policy: policy.name,
      version: policy.version,
      tokensHeld: this.keys.heldAt(now) / MICRO,
      keys: this.keys.size,
      waiting: this.teller.room.size + (this.teller.paced?.size ?? 0),
      seats: this.#desk()?.held(policy.name) ?? 0,
      blocked: this.#marked.blocked(policy.name),
      degraded: this.teller.paced?.degraded || (this.#keeper.degraded && policy.terms.ceiling !== undefined),
    };
  }

  /** @internal Answers whoever waits, and turns away whoever comes. */
  close(): void {
    this.teller.close();
    const now = this.teller.now();
    for (const state of this.keys.states()) {
      this.teller.room.close(state, now);
      this.teller.paced?.close(state, now);
    }
    this.teller.paced?.stop();
    this.keys.close();
  }
}
