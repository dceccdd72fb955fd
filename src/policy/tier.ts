import type { CalendarUnit } from '../calendar.js';
import { MICRO, MICROS_PER_MS, type Microseconds, type Period } from '../units.js';
import type { Fields } from './fields.js';
import type { Algorithm, AlgorithmTerms, CeilingTier, LocalTier, TierDocument, Windows } from './policy.js';
import {
  type Amount,
  mayBeHeld,
  type Numbers,
  rateOf,
  readAmount,
  readAmountOrZero,
  readBurst,
  readPeriod,
} from './rate.js';

const ALGORITHMS: readonly Algorithm[] = [
  'token-bucket',
  'leaky-bucket',
  'fixed-window',
  'sliding-window-log',
  'sliding-window-counter',
];
const ALIGNMENTS = ['calendar', 'first-use'] as const;
const DAY_US: Microseconds = 86_400_000 * MICROS_PER_MS;
const CALENDAR_UNITS: ReadonlyMap<unknown, { readonly unit: CalendarUnit; readonly length: Microseconds }> = new Map(
  (
    [
      ['day', 1],
      ['week', 7],
      ['month', 30],
    ] as const
  ).map(([unit, days]) => [unit, { unit, length: days * DAY_US }]),
);
/** Names of the IANA data base; what else `Intl` may take has a colon, which keys of the store are cut at. */
const TIME_ZONE = /^[A-Za-z0-9_+\-/]{1,64}$/;
const SECOND_MS = 1_000;

/** One tier of a policy in every form it is needed in. */
export interface Tier {
  readonly document: TierDocument;
  readonly local: LocalTier;
  readonly ceiling: CeilingTier;
}

/** Reads the tier under `name`; `undefined` where it is left out. */
export function readTier(parent: Fields, name: 'local' | 'ceiling'): Tier | undefined {
  const fields = parent.nested(name);
  if (!fields) return undefined;
  const asked = fields.choice('algorithm', ALGORITHMS);
  const algorithm = asked ?? 'token-bucket';
  switch (algorithm) {
    case 'token-bucket':
      return tokenBucket(fields.only(['algorithm', 'rate', 'burst', 'per']), asked !== undefined);
    case 'leaky-bucket':
      return leakyBucket(fields.only(['algorithm', 'rate', 'per', 'queue']));
    case 'fixed-window':
      return fixedWindow(fields.only(['algorithm', 'limit', 'window', 'timeZone', 'align']));
    default:
      return slidingWindow(fields.only(['algorithm', 'limit', 'window']), algorithm);
  }
}

function tokenBucket(fields: Fields, named: boolean): Tier {
  const amount = readAmount(fields, 'rate');
  const burst = readBurst(fields, 'burst');
  const numbers = rateOf(fields, 'rate', { amount, burst, period: readPeriod(fields, 'per', SECOND_MS) });
  const algorithm = 'token-bucket';
  const document = { ...(named && { algorithm }), rate: amount.tokens, burst: burst.tokens, ...given(fields, 'per') };
  return tier(document as TierDocument, { algorithm }, numbers);
}

function leakyBucket(fields: Fields): Tier {
  const amount = readAmount(fields, 'rate');
  const queue = mayBeHeld(fields, 'queue', readAmountOrZero(fields, 'queue'));
  // What is larger than the queue could never wait its turn, though it might find nobody before it.
  const burst = queue.tokens >= 1 ? queue : { tokens: 1, micros: BigInt(MICRO) };
  const numbers = rateOf(fields, 'rate', { amount, burst, period: readPeriod(fields, 'per', SECOND_MS) });
  const algorithm = 'leaky-bucket';
  const document = { algorithm, rate: amount.tokens, ...given(fields, 'per'), queue: queue.tokens };
  return tier(document as TierDocument, { algorithm, queue: queue.tokens }, numbers);
}

function fixedWindow(fields: Fields): Tier {
  const limit = readBurst(fields, 'limit');
  const align = fields.choice('align', ALIGNMENTS);
  const windows = readWindows(fields, align ?? 'calendar');
  const document = {
    algorithm: 'fixed-window',
    limit: limit.tokens,
    ...given(fields, 'window'),
    ...given(fields, 'timeZone'),
    ...(align && { align }),
  };
  return tier(
    document as TierDocument,
    { algorithm: 'fixed-window', windows },
    perWindow(fields, limit, windows.length),
  );
}

function slidingWindow(fields: Fields, algorithm: 'sliding-window-log' | 'sliding-window-counter'): Tier {
  const limit = readBurst(fields, 'limit');
  const length = readPeriod(fields, 'window');
  const document = { algorithm, limit: limit.tokens, window: fields.get('window') as Period };
  return tier(document, { algorithm, length }, perWindow(fields, limit, length));
}

function perWindow(fields: Fields, limit: Amount, length: Microseconds): Numbers {
  return rateOf(fields, 'limit', { amount: limit, burst: limit, period: length });
}

function readWindows(fields: Fields, align: (typeof ALIGNMENTS)[number]): Windows {
  const calendar = CALENDAR_UNITS.get(fields.get('window'));
  if (!calendar) {
    const length = readPeriod(fields, 'window', undefined, ', or "day", "week" or "month"');
    if (fields.has('timeZone')) throw fields.wrong('timeZone', 'left out, where `window` is a length');
    return Object.freeze({ by: align === 'first-use' ? align : 'epoch', length });
  }
  if (align === 'first-use') throw fields.wrong('align', '"calendar", where `window` is a part of the calendar');
  const timeZone = fields.has('timeZone') ? fields.get('timeZone') : 'UTC';
  if (!isTimeZone(timeZone))
    throw fields.wrong('timeZone', "a name of the IANA time zone data, such as 'Europe/Berlin'");
  return Object.freeze({ by: 'calendar', unit: calendar.unit, timeZone, length: calendar.length });
}

function isTimeZone(name: unknown): name is string {
  if (typeof name !== 'string' || !TIME_ZONE.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en-US', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function tier(document: TierDocument, terms: AlgorithmTerms, { local, ceiling }: Numbers): Tier {
  return Object.freeze({
    document: Object.freeze(document),
    local: Object.freeze({ ...terms, ...local }),
    ceiling: Object.freeze({ ...terms, ...ceiling }),
  });
}

/** A field of the document, where it was given: as it was written. */
function given(fields: Fields, name: string): object {
  return fields.has(name) ? { [name]: fields.get(name) } : {};
}
