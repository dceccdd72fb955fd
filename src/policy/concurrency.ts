import type { Fields } from './fields.js';
import type { ConcurrencyDocument, ConcurrencyTerms } from './policy.js';

const LOST_AFTER_MS = { default: 10_000, least: 1_000, most: 600_000 } as const;

/** Seats in every form they are needed in. */
export interface Concurrency {
  readonly document: ConcurrencyDocument;
  readonly terms: ConcurrencyTerms;
}

/** Reads `concurrency`; `undefined` where it is left out. */
export function readConcurrency(parent: Fields): Concurrency | undefined {
  const fields = parent.nested('concurrency')?.only(['limit', 'lostAfterMs']);
  if (!fields) return undefined;
  const limit = fields.number('limit', 'a positive whole number', (value) => Number.isSafeInteger(value) && value > 0);
  if (limit === undefined) throw fields.wrong('limit', 'a positive whole number');
  const { least, most } = LOST_AFTER_MS;
  const lostAfterMs = fields.number(
    'lostAfterMs',
    'a whole number of ms from 1000 to 600000',
    (value) => Number.isSafeInteger(value) && value >= least && value <= most,
  );
  return Object.freeze({
    document: Object.freeze({ limit, ...(lostAfterMs !== undefined && { lostAfterMs }) }),
    terms: Object.freeze({ limit, lostAfterMs: lostAfterMs ?? LOST_AFTER_MS.default }),
  });
}
