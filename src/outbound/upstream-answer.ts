import type { EpochMilliseconds, Milliseconds } from '../units.js';

/** Header fields of a response by lower-case name. */
export type FieldOf = (name: string) => string | undefined;

/** Epoch seconds are above this and spans of seconds below it: which of the two an X-RateLimit-Reset is. */
const LONGEST_SPAN_SECONDS = 1_000_000_000;

/**
 * How long an upstream wants to be left alone, by what it answered: its Retry-After, which goes first, or else a limit of
 * which nothing remains, in any of the dialects in use. 0 where it says nothing; fields that make no sense say nothing.
 */
export function pauseAskedFor(status: number, field: FieldOf, wallNow: EpochMilliseconds): Milliseconds {
  const refused = status === 429 || status === 503;
  const retryAfter = refused ? retryAfterMs(field('retry-after'), wallNow) : undefined;
  return retryAfter ?? exhaustedForMs(field, wallNow) ?? 0;
}

/** Retry-After (RFC 9110, section 10.2.3): whole seconds, or a date. */
function retryAfterMs(value: string | undefined, wallNow: EpochMilliseconds): Milliseconds | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value)) return Number(value) * 1_000;
  // Only a date has letters: Date.parse would make something of most other texts too.
  const date = /^[A-Z][a-z]{2,8},? /.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - wallNow);
}

function exhaustedForMs(field: FieldOf, wallNow: EpochMilliseconds): Milliseconds | undefined {
  const current = field('ratelimit');
  if (current !== undefined) return exhaustedByListMs(current);
  for (const prefix of ['ratelimit', 'x-ratelimit', 'x-rate-limit']) {
    const remaining = wholeNumber(field(`${prefix}-remaining`));
    const reset = wholeNumber(field(`${prefix}-reset`));
    if (remaining !== 0 || reset === undefined) continue;
    return reset < LONGEST_SPAN_SECONDS ? reset * 1_000 : Math.max(0, reset * 1_000 - wallNow);
  }
  return undefined;
}

/** The longest wait among the limits of which nothing remains: `"a";r=0;t=5`, `"a";a=0;w=5`, `remaining=0, reset=5`. */
function exhaustedByListMs(value: string): Milliseconds | undefined {
  // Names may hold anything but a quote that is not escaped; nothing else in these fields has one.
  const bare = value.replace(/"(?:[^"\\]|\\.)*"/g, '""');
  const members = bare.includes('""') ? bare.split(',') : [bare];
  const waits = members.flatMap((member) => {
    const numbers = new Map([...member.matchAll(/\b([a-z]+)=(\d{1,15})\b/g)].map(([, name, digits]) => [name, digits]));
    const remaining = numbers.get('r') ?? numbers.get('a') ?? numbers.get('remaining');
    const seconds = numbers.get('t') ?? numbers.get('w') ?? numbers.get('reset');
    return Number(remaining) === 0 && seconds !== undefined ? [Number(seconds) * 1_000] : [];
  });
  return waits.length === 0 ? undefined : Math.max(...waits);
}

function wholeNumber(value: string | undefined): number | undefined {
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
