import { CostAboveBurstError, InvalidCostError } from '../errors.js';
import { everyTerms, type Policy, type Terms, termsFor } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Tokens } from '../units.js';

/** The largest cost each tier could ever meet; Infinity where the tier was not always there. */
interface Largest {
  readonly local: Tokens;
  readonly ceiling: MicroTokens;
}

/**
 * The largest cost that a key's terms in force here, or any before them, could meet. A cost above it is the caller's
 * mistake; one that fitted once, and no longer does, is denied: publishing must not make services throw.
 */
export class CostLimits {
  #policy: Policy;
  /** What the earlier versions could meet, whichever key it was for. */
  #past: Largest = { local: 0, ceiling: 0 };
  /** What all keys can meet: no more need be known of most costs. */
  #least: Tokens;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#least = this.#leastOf(policy);
  }

  /** Whether a cost of one token is within every limit; once true it stays so. */
  get unitFits(): boolean {
    return this.#least >= 1;
  }

  /** A newer version has come into force. */
  widen(policy: Policy): void {
    for (const terms of everyTerms(this.#policy)) this.#past = this.#largest(terms);
    this.#policy = policy;
    this.#least = this.#leastOf(policy);
  }

  /** @throws CostAboveBurstError */
  check(key: string, cost: Tokens): void {
    if (cost <= this.#least) return;
    const { local, ceiling } = this.#largest(termsFor(this.#policy, key));
    if (cost > local) throw new CostAboveBurstError(cost, 'local', local);
    if (cost > ceiling / MICRO) throw new CostAboveBurstError(cost, 'ceiling', ceiling / MICRO);
  }

  #leastOf(policy: Policy): Tokens {
    const all = everyTerms(policy).map((terms) => this.#largest(terms));
    return Math.min(...all.map(({ local, ceiling }) => Math.min(local, ceiling / MICRO)));
  }

  #largest({ local, ceiling }: Terms): Largest {
    return {
      local: Math.max(this.#past.local, local?.burst ?? Number.POSITIVE_INFINITY),
      ceiling: Math.max(this.#past.ceiling, ceiling?.burst ?? Number.POSITIVE_INFINITY),
    };
  }
}

/**
 * The micro-tokens of an amount.
 *
 * @throws InvalidCostError where it is not positive, finite and of at most six decimals
 */
export function microTokensOf(amount: unknown): MicroTokens {
  if (typeof amount !== 'number' || !(amount > 0) || amount === Number.POSITIVE_INFINITY)
    throw new InvalidCostError(amount);
  const micro = Math.round(amount * MICRO);
  if (micro < 1 || Math.abs(micro / MICRO - amount) > amount * Number.EPSILON) throw new InvalidCostError(amount);
  return micro;
}
