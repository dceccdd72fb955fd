import { isIPv6 } from 'node:net';
import { InvalidOptionError } from '../errors.js';
import { type HeaderFields, headersFor, type LimitResponse, type Ruling, responseTo } from '../http/index.js';
import type { Limiter } from '../index.js';
import { systemTime } from '../time.js';
import { type AddressSource, clientKey } from './client-address.js';
import { type CheckedGateOptions, checkGateOptions, type GateOptions, type PolicyRule } from './gate-options.js';
import { remember, rulingsOf } from './rulings-of.js';
import { SetupWarnings } from './setup-warnings.js';

/** What becomes of a request. */
export type Passage =
  /** It is not limited here. */
  | { readonly outcome: 'skipped' }
  /** Its client hung up while it waited: nobody is left to answer. */
  | { readonly outcome: 'gone' }
  /** It goes on; its response carries `headers`. */
  | { readonly outcome: 'allowed'; readonly headers: HeaderFields; readonly rulings: readonly Ruling[] }
  | { readonly outcome: 'denied'; readonly response: LimitResponse; readonly rulings: readonly Ruling[] };

const SKIPPED: Passage = { outcome: 'skipped' };
const GONE: Passage = { outcome: 'gone' };

/**
 * What every adaptor stands on: asks the policies about a request, and says what to do with it. An adaptor only knows
 * where its framework keeps things.
 */
export class Gate<Request> {
  readonly #limiter: Limiter;
  readonly #options: CheckedGateOptions<Request>;
  readonly #source: AddressSource<Request> | undefined;
  readonly #warnings: SetupWarnings;

  /**
   * @param source where addresses are; without one every policy needs a `key`
   * @throws {InvalidOptionError} {@link UnknownPolicyError}
   */
  constructor(limiter: Limiter, options: GateOptions<Request>, source?: AddressSource<Request>) {
    this.#limiter = limiter;
    this.#options = checkGateOptions(options);
    this.#source = source;
    this.#warnings = new SetupWarnings(this.#options.onWarning);
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
  async pass(request: Request, carrier: object, signal?: AbortSignal): Promise<Passage> {
    const { skip, shadow } = this.#options;
    if (skip !== undefined && (await skip(request))) return SKIPPED;
    let rulings: readonly Ruling[];
    try {
      rulings = await this.#rulings(request, signal);
    } catch (error) {
      if (signal?.aborted) return GONE;
      throw error;
    }
    if (shadow === true) return { outcome: 'allowed', headers: {}, rulings };
    if (remember(carrier, rulings)) this.#warnings.tell('HEADGATE_COUNTED_TWICE');
    const response = responseTo(rulingsOf(carrier), this.#options, {
      wallNow: systemTime.wallNow(),
      random: Math.random,
    });
    if (response === undefined) return { outcome: 'allowed', headers: this.headersOf(carrier), rulings };
    const changed = await this.#options.response?.(response, { request, rulings });
    return { outcome: 'denied', response: changed ?? response, rulings };
  }

  /** The fields that tell where a request stands by all the gates it has come to. */
  headersOf(carrier: object): HeaderFields {
    return headersFor(rulingsOf(carrier), this.#options, systemTime.wallNow());
  }

  async #rulings(request: Request, signal: AbortSignal | undefined): Promise<readonly Ruling[]> {
    const rulings: Ruling[] = [];
    for (const rule of this.#options.rules) {
      signal?.throwIfAborted();
      const ruling = await this.#ruling(request, rule, signal);
      if (ruling !== undefined) rulings.push(ruling);
      if (ruling?.decision.allowed === false) break;
    }
    return rulings;
  }

  async #ruling(
    request: Request,
    rule: PolicyRule<Request>,
    signal: AbortSignal | undefined,
  ): Promise<Ruling | undefined> {
    const name = typeof rule.policy === 'string' ? rule.policy : await rule.policy(request);
    if (name === undefined) return undefined;
    const policy = this.#limiter.policy(name);
    const key = await this.#keyOf(request, rule);
    const cost = typeof rule.cost === 'function' ? await rule.cost(request) : (rule.cost ?? 1);
    const { maxWaitMs } = this.#options;
    const decision = await policy.acquire(key, {
      cost,
      ...(maxWaitMs !== undefined && { maxWaitMs }),
      ...(signal && { signal }),
    });
    return { decision, policy: policy.policy, key, cost };
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
