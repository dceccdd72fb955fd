import { CeilingError } from '../errors.js';
import { atDeadline, type Time } from '../time.js';
import type { Milliseconds } from '../units.js';
import type { Account } from './account.js';
import type { Filled } from './errand.js';

/**
 * Has an account's next call fill its bucket, and resolves once that is answered.
 *
 * @throws {CeilingError} where it fails, or is not answered within `deadlineMs`
 */
export function refill(account: Account, time: Time, deadlineMs: Milliseconds, ask: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const told: Filled = (error) => {
      deadline.cancel();
      if (error) reject(error);
      else resolve();
    };
    const deadline = atDeadline(time, deadlineMs, () => {
      account.leaveAsItIs(told);
      told(new CeilingError(`The ceiling store did not answer within ${deadlineMs} ms.`));
    });
    account.fill(told);
    ask();
  });
}
