import type { PolicyLimiter } from '../limiter/policy-limiter.js';
import { microTokensPerSecond, termsFor } from '../policy/policy.js';
import { MICRO, type Milliseconds, type Tokens } from '../units.js';

/** How long `key` takes to earn `cost` at this instance; of a ceiling that of the whole fleet, an equal part is its own. */
export function earningTime(api: PolicyLimiter, key: string, cost: Tokens): Milliseconds {
  const { local, ceiling } = termsFor(api.policy, key);
  const alone = local === undefined ? 0 : cost / local.ratePerMs;
  if (ceiling === undefined) return alone;
  const fleet = Math.max(1, api.teller.keeper.fleetSize);
  return Math.max(alone, (cost / (microTokensPerSecond(ceiling) / MICRO / 1_000)) * fleet);
}
