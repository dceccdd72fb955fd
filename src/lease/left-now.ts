import type { CeilingStore } from '../ceiling/ceiling-store.js';
import type { MicroTokens } from '../units.js';
import type { Account } from './account.js';

/**
 * What a store in this process would grant `holder` right now on top of what the account holds; `undefined` for one
 * elsewhere, which alone knows.
 */
export function leftNow(store: CeilingStore, holder: string, account: Account): MicroTokens | undefined {
  try {
    const { ledger: policy, key, fence } = account;
    return store.leftNow?.({ policy, key, fence, version: account.policy.version, holder });
  } catch {
    return undefined;
  }
}
