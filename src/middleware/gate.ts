import { isIPv6 } from 'node:net';
import { InvalidOptionError } from '../errors.js';
import {
  type HeaderFields,
  headersFor,
  type LimitResponse,
  RetrySlots,
  type Ruling,
  responseTo,
} from '../http/index.js';
import type { Decision, Limiter } from '../index.js';
import { systemTime } from '../time.js';
import type { Milliseconds } from '../units.js';
import { earningTime } from '../verb/earning-time.js';
import { peek } from '../verb/one-limit.js';
import { acquireAll, type Limit } from '../verb/several.js';
import { type AddressSource, clientKey } from './client-address.js';
import {
  type CheckedGateOptions,
  checkGateOptions,
  type GateOptions,
  type PolicyRule,
  type ResponseOutcome,
} from './gate-options.js';
import type { WaitSignal } from './hang-up.js';
import { remember, rulingsOf } from './rulings-of.js';
import { settlement } from './settlement.js';
import { SetupWarnings } from './setup-warnings.js';

/** What becomes of a request. */
export type Passage =
  /** It is not limited here. */
  | { readonly outcome: 'skipped' }
  /** Its client hung up while it waited, or somebody else has answered: nobody is left to answer. */
  | { readonly outcome: 'gone' }
  /** It goes on; its response carries `headers`. */
  | {
      readonly outcome: 'allowed';
      readonly headers: HeaderFields;
      readonly rulings: readonly Ruling[];
      /** To be told how the request was answered, where what it costs depends on that. */
      readonly settle: ((response: ResponseOutcome) => void) | undefined;
    }
  | { readonly outcome: 'denied'; readonly response: LimitResponse; readonly rulings: readonly Ruling[] };

const SKIPPED: Passage = { outcome: 'skipped' };
const GONE: Passage = { outcome: 'gone' };
const NO_RULINGS: readonly Ruling[] = Object.freeze([]);

/**
 * What every adaptor stands on: asks the policies about a request, and says what to do with it. An adaptor only knows
 * where its framework keeps things.
 */
export class Gate<Request> {
  readonly #limiter: Limiter;
  readonly #options: CheckedGateOptions<Request>;
  readonly #source: AddressSource<Request> | undefined;
  readonly #warnings: SetupWarnings;
  readonly #slots: RetrySlots | undefined;

  /**
   * @param source where addresses are; without one every policy needs a `key`
   * @throws {InvalidOptionError} {@link UnknownPolicyError}
   */
  constructor(limiter: Limiter, options: GateOptions<Request>, source?: AddressSource<Request>) {
    this.#limiter = limiter;
    this.#options = checkGateOptions(options);
    this.#source = source;
    this.#warnings = new SetupWarnings(this.#options.onWarning);
    const { spreadMs = 0 } = this.#options;
    this.#slots = spreadMs > 0 ? new RetrySlots(spreadMs) : undefined;
    for (const { policy, key } of this.#options.rules) {
      // A name that is wrong should stop the start, not the first request.
      if (typeof policy === 'string') limiter.policy(policy);
      if (key === undefined && source === undefined) {
        throw new InvalidOptionError('Expected `key`, got none: requests have no client address here.');
      }
    }
  }

  /**
   * @param carrier the object that is one and the same for this request in every layer of the framework
   * @param signal ends the wait of a request whose client has hung up
   * @throws what `key`, `cost`, `skip`, `policy` and `response` throw, and what `acquire` does of their answers
   */
  async pass(request: Request, carrier: object, signal?: WaitSignal): Promise<Passage> {
    const { skip, shadow } = this.#options;
    if (skip !== undefined && (await skip(request))) return SKIPPED;
    let rulings: readonly Ruling[];
    try {
      rulings = await this.#rulings(request, signal);
    } catch (error) {
      if (signal?.aborted) return GONE;
      throw error;
    }
    const settle = settlement(this.#limiter, this.#options.settle, request, rulings);
    if (shadow === true) return { outcome: 'allowed', headers: {}, rulings, settle };
    if (remember(carrier, rulings)) this.#warnings.tell('HEADGATE_COUNTED_TWICE');
    const response = responseTo(rulingsOf(carrier), this.#options, {
      wallNow: systemTime.wallNow(),
      random: Math.random,
      putOffMs: this.#slots ? this.#putOff(this.#slots, rulings) : 0,
    });
    if (response === undefined) return { outcome: 'allowed', headers: this.headersOf(carrier), rulings, settle };
    const changed = await this.#options.response?.(response, { request, rulings });
    return { outcome: 'denied', response: changed ?? response, rulings };
  }

  /** The fields that tell where a request stands by all the gates it has come to. */
  headersOf(carrier: object): HeaderFields {
    return headersFor(rulingsOf(carrier), this.#options, systemTime.wallNow());
  }

  async #rulings(request: Request, signal: WaitSignal | undefined): Promise<readonly Ruling[]> {
    const { maxWaitMs, rules } = this.#options;
    const patience = {
      ...(maxWaitMs !== undefined && { maxWaitMs }),
      ...(signal && { signal: signal as AbortSignal }),
    };
    const limits: Required<Limit>[] = [];
    for (const rule of rules) {
      signal?.throwIfAborted();
      const limit = await this.#limitOf(request, rule);
      if (limit !== undefined) limits.push(limit);
    }
    const [first] = limits;
    if (first === undefined) return NO_RULINGS;
    if (limits.length === 1) {
      const decision = await this.#limiter.policy(first.policy).acquire(first.key, { cost: first.cost, ...patience });
      return [this.#rulingOf(first, decision)];
    }
    const joint = await acquireAll(this.#limiter, limits, patience);
    if (joint.allowed) return limits.map((limit, i) => this.#rulingOf(limit, joint.decisions[i] as Decision));
    // One has denied for all of them. What the others would have said tells the client where it stands.
    const rulings = limits.map((limit, i) =>
      this.#rulingOf(
        limit,
        i === joint.deniedBy ? joint.denied : peek(this.#limiter.policy(limit.policy), limit.key, limit.cost),
      ),
    );
    return rulings.filter(({ decision }, i) => i === joint.deniedBy || decision.allowed || decision.reason === 'empty');
  }

  async #limitOf(request: Request, rule: PolicyRule<Request>): Promise<Required<Limit> | undefined> {
    const policy = typeof rule.policy === 'string' ? rule.policy : await rule.policy(request);
    if (policy === undefined) return undefined;
    const key = await this.#keyOf(request, rule);
    const cost = typeof rule.cost === 'function' ? await rule.cost(request) : (rule.cost ?? 1);
    return { policy, key, cost };
  }

  /** By how much the turn of a denied request comes later than it could pass. */
  #putOff(slots: RetrySlots, rulings: readonly Ruling[]): Milliseconds {
    const now = systemTime.now();
    let longest = 0;
    let slot = 0;
    for (const { decision, policy, key, cost } of rulings) {
      if (decision.allowed || decision.retryAfterMs === undefined) continue;
      const gapMs = earningTime(this.#limiter.policy(policy.name), key, cost);
      longest = Math.max(longest, decision.retryAfterMs);
      slot = Math.max(slot, slots.next(`${policy.name} ${key}`, decision.retryAfterMs, gapMs, now));
    }
    return slot - longest;
  }

  #rulingOf({ policy, key, cost }: Required<Limit>, decision: Decision): Ruling {
    return { decision, policy: this.#limiter.policy(policy).policy, key, cost };
  }

  async #keyOf(request: Request, { key }: PolicyRule<Request>): Promise<string> {
    if (key === undefined) {
      const source = this.#source as AddressSource<Request>;
      return clientKey(request, source, this.#options.ipv6Prefix ?? 64, this.#warnings);
    }
    const made = await key(request);
    if (typeof made === 'string' && made.includes(':') && isIPv6(made)) this.#warnings.tell('HEADGATE_FULL_IPV6_KEY');
    return made;
  }
}
