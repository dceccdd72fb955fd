import type { WindowCall } from '../ceiling-store.js';
import { fixedWindow } from './fixed-window.js';
import type { Cut, RefillRule } from './refill-rule.js';
import { slidingCounter } from './sliding-counter.js';
import { slidingLog } from './sliding-log.js';
import { tokenBucket } from './token-bucket.js';

const RULES: Readonly<Record<WindowCall['rule'], RefillRule>> = {
  epoch: fixedWindow,
  'first-use': fixedWindow,
  calendar: fixedWindow,
  log: slidingLog,
  counter: slidingCounter,
};

/** The rule of the bucket that a call is about: its ledger has no bucket of another. */
export function ruleOf({ window }: Cut): RefillRule {
  return window ? RULES[window.rule] : tokenBucket;
}
