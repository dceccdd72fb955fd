import { setTimeout as sleep } from 'node:timers/promises';

export interface EventuallyOptions {
  /** Real time after which waiting fails, in ms. Default 5000. */
  deadlineMs?: number;
  /** Pause between two looks, in ms. Default 10. */
  everyMs?: number;
}

/**
 * Waits until `condition` gives a truthy value, and resolves to it. This is how a test waits for something it can
 * observe; a fixed sleep is either too short on a busy machine or too long on every other.
 * A condition that throws does not hold yet; its last error is the `cause` of the failure.
 *
 *     await eventually(async () => (await redis.get('n')) === '1', 'the INCR has run');
 */
export async function eventually<T>(
  condition: () => T | Promise<T>,
  message: string,
  { deadlineMs = 5000, everyMs = 10 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  let last: { value: unknown } | { error: unknown };
  do {
    try {
      const value = await condition();
      if (value) return value;
      last = { value };
    } catch (error) {
      last = { error };
    }
    await sleep(everyMs);
  } while (performance.now() < deadline);
  const seen = 'error' in last ? `it threw ${String(last.error)}` : `it gave ${String(last.value)}`;
  throw new Error(
    `Not within ${deadlineMs} ms: ${message} (last, ${seen})`,
    'error' in last ? { cause: last.error } : {},
  );
}
