import type { WindowCall } from '../ceiling/ceiling-store.js';
import { type CeilingTier, everyTerms, type Policy } from '../policy/policy.js';
import type { Microseconds } from '../units.js';
import type { CalendarWindows, CallCalendar } from './call-calendar.js';

/** By tier, which is frozen and lives as long as its policy. */
const fixed = new WeakMap<CeilingTier, WindowCall>();
const calendars = new WeakMap<CeilingTier, CallCalendar>();
let Calendar: typeof CallCalendar | undefined;

/** Whether a policy has ceilings whose windows are the calendar's, and the code for these has not been loaded. */
export function lacksCalendar(policy: Policy): boolean {
  return !Calendar && everyTerms(policy).some(({ ceiling }) => ceiling && isCalendar(ceiling));
}

/** Loads it: most limiters do without. */
export async function loadCalendar(): Promise<void> {
  Calendar = (await import('./call-calendar.js')).CallCalendar;
}

/**
 * What a call says of the windows of its ceiling; `undefined` for a token bucket. Answers the same object for as long as
 * the window lasts, so that a call allocates nothing for it.
 *
 * @param storeNow what the caller takes the store's time to be. Where it is wrong, the store says so, and what it is.
 */
export function windowCall(tier: CeilingTier, storeNow: Microseconds): WindowCall | undefined {
  if (tier.algorithm === 'token-bucket' || tier.algorithm === 'leaky-bucket') return undefined;
  if (isCalendar(tier)) {
    let calendar = calendars.get(tier);
    if (!calendar) {
      calendar = new (Calendar as typeof CallCalendar)(tier.windows);
      calendars.set(tier, calendar);
    }
    return calendar.at(storeNow);
  }
  let call = fixed.get(tier);
  if (!call) {
    call = Object.freeze(unchanging(tier));
    fixed.set(tier, call);
  }
  return call;
}

/**
 * What a ledger's name ends with, so that each ledger has buckets of one rule only. What decides where windows begin is
 * in it; their length is not, which may change under a ledger.
 */
export function ledgerSuffix(tier: CeilingTier | undefined): string {
  switch (tier?.algorithm) {
    case 'fixed-window': {
      const { windows } = tier;
      if (windows.by !== 'calendar') return windows.by === 'epoch' ? '~window' : '~first-use';
      return windows.timeZone === 'UTC' ? `~${windows.unit}` : `~${windows.unit}@${windows.timeZone}`;
    }
    case 'sliding-window-log':
      return '~log';
    case 'sliding-window-counter':
      return '~counter';
    case 'leaky-bucket':
      return '~pace';
    default:
      return '';
  }
}

function unchanging(tier: CeilingTier): WindowCall {
  const start = 0;
  const end = 0;
  if (tier.algorithm === 'fixed-window') {
    const { by, length } = tier.windows;
    return { rule: by, length, start, end };
  }
  const { length } = tier as CeilingTier & { length: Microseconds };
  return { rule: tier.algorithm === 'sliding-window-log' ? 'log' : 'counter', length, start, end };
}

function isCalendar(tier: CeilingTier): tier is CeilingTier & { readonly windows: CalendarWindows } {
  return tier.algorithm === 'fixed-window' && tier.windows.by === 'calendar';
}
