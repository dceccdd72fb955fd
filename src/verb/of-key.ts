import { KeyHandle } from '../limiter/key-handle.js';
import type { PolicyLimiter } from '../limiter/policy-limiter.js';

/** What a verb of one key is asked of: a policy's limiter and the key, or a handle of it. Then what the verb takes itself. */
export type OfKey<Own extends unknown[]> =
  | [limit: PolicyLimiter, key: string, ...own: Own]
  | [handle: KeyHandle, ...own: Own];

/** The same, with a handle in any case. */
export function handled<Own extends unknown[]>(call: OfKey<Own>): [handle: KeyHandle, ...own: Own] {
  const [first] = call;
  if (first instanceof KeyHandle) return call as [KeyHandle, ...Own];
  const [limit, key, ...own] = call as [PolicyLimiter, string, ...Own];
  return [new KeyHandle(key, limit), ...own];
}
