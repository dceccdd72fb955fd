import { CeilingError } from '../errors.js';
import type { KeyHandle } from '../limiter/key-handle.js';
import type { Milliseconds } from '../units.js';
import { peek } from './one-limit.js';

/**
 * Leaves a key alone for `ms`, in the whole fleet, as an upstream has asked: a block, which those who are patient enough
 * wait out. What is known to be paused for as long already is not said again. Where the store can't be told the pause
 * holds here, and others hear of it from the upstream itself.
 *
 * @throws as `block`, but for that
 */
export async function pause(handle: KeyHandle, ms: Milliseconds): Promise<void> {
  const now = peek(handle);
  if (!now.allowed && now.reason === 'blocked' && (now.retryAfterMs ?? Number.POSITIVE_INFINITY) >= ms) return;
  try {
    await handle.block(ms);
  } catch (error) {
    if (!(error instanceof CeilingError)) throw error;
  }
}
