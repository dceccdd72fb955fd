import { CostAboveBurstError, InvalidCostError } from '../errors.js';
import { type Policy, type Terms, termsFor } from '../policy/policy.js';
import { MICRO, type MicroTokens, type Tokens } from '../units.js';

/** The largest cost each tier could ever meet; Infinity where the tier was not always there. */
interface Largest {
  readonly local: Tokens;
  readonly ceiling: MicroTokens;
}

/**
 * The largest cost that any version of a policy in force here could meet. A cost above it is the caller's mistake; one
 * that fitted once, and no longer does, is denied: publishing must not make services throw.
 */
export class CostLimits {
  #default: Largest;
  readonly #byKey = new Map<string, Largest>();
  #policy: Policy;

  constructor(policy: Policy) {
    this.#policy = policy;
    this.#default = largest(policy.terms);
    for (const [key, terms] of policy.overrides) this.#byKey.set(key, largest(terms));
  }

  /** Whether a cost of one token is within every limit; once true it stays so. */
  get unitFits(): boolean {
    return [this.#default, ...this.#byKey.values()].every(({ local, ceiling }) => local >= 1 && ceiling >= MICRO);
  }

  /** A newer version has come into force. */
  widen(policy: Policy): void {
    for (const key of new Set([...this.#policy.overrides.keys(), ...policy.overrides.keys()])) {
      this.#byKey.set(key, wider(this.#for(key), largest(termsFor(policy, key))));
    }
    this.#default = wider(this.#default, largest(policy.terms));
    this.#policy = policy;
  }

  /** @throws CostAboveBurstError */
  check(key: string, cost: Tokens): void {
    const { local, ceiling } = this.#for(key);
    if (cost > local) throw new CostAboveBurstError(cost, 'local', local);
    if (cost > ceiling / MICRO) throw new CostAboveBurstError(cost, 'ceiling', ceiling / MICRO);
  }

  #for(key: string): Largest {
    return this.#byKey.size === 0 ? this.#default : (this.#byKey.get(key) ?? this.#default);
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

function largest({ local, ceiling }: Terms): Largest {
  return { local: local?.burst ?? Number.POSITIVE_INFINITY, ceiling: ceiling?.burst ?? Number.POSITIVE_INFINITY };
}

function wider(a: Largest, b: Largest): Largest {
  return { local: Math.max(a.local, b.local), ceiling: Math.max(a.ceiling, b.ceiling) };
}
