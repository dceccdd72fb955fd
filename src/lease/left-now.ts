import type { CeilingStore } from '../ceiling/ceiling-store.js';
import type { MicroTokens } from '../units.js';
import type { Account } from './account.js';
import { windowCall } from './window-call.js';

/**
 * What a store in this process would grant `holder` right now on top of what the account holds; `undefined` for one
 * elsewhere, which alone knows.
 */
export function leftNow(store: CeilingStore, holder: string, account: Account): MicroTokens | undefined {
  try {
    const { ledger: policy, name: key, fence } = account;
    const { ceiling } = account.terms;
    // As of the last reply: where another window has begun since, the answer may be too low.
    const window = ceiling && windowCall(ceiling, account.clock.lastReply);
    return store.leftNow?.({ policy, key, fence, version: account.policy.version, holder, window });
  } catch {
    return undefined;
  }
}
