import type { History } from '../stage.js';
import { faultHistories } from './faults.js';
import { holderHistories } from './holder.js';
import { ledgerHistories } from './ledger.js';
import { outageHistories } from './outages.js';
import { windowHistories } from './windows.js';

/** Every directed history there is. */
export const histories: readonly History[] = [
  ...ledgerHistories,
  ...holderHistories,
  ...faultHistories,
  ...outageHistories,
  ...windowHistories,
];
