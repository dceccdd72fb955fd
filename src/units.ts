/** Milliseconds on a monotonic clock, or a span of them. */
export type Milliseconds = number;
/** Milliseconds since the Unix epoch, on a wall clock. */
export type EpochMilliseconds = number;
/** Microseconds since the Unix epoch on the store's clock, or a span of them; always a whole number. */
export type Microseconds = number;
/** Whole or fractional tokens, as callers see them. */
export type Tokens = number;
/** Millionths of a token, always a whole number below 2^53: what crosses the wire and what the ledger counts in. */
export type MicroTokens = number;

/** Micro-tokens in one token. */
export const MICRO = 1_000_000;
/** Microseconds in one millisecond. */
export const MICROS_PER_MS = 1_000;

/** A span of time: a number of milliseconds, or a number and a unit, such as `'500ms'`, `'1s'`, `'15m'`, `'1h'`, `'30d'`. */
export type Period = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNIT_MS: Readonly<Record<string, Milliseconds>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PERIOD = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/;

/** The milliseconds of a {@link Period}, or `undefined` where the text or number is not one. */
export function periodMs(period: unknown): Milliseconds | undefined {
  if (typeof period === 'number') return Number.isFinite(period) && period > 0 ? period : undefined;
  if (typeof period !== 'string') return undefined;
  const match = PERIOD.exec(period);
  if (!match) return undefined;
  const ms = Number(match[1]) * (UNIT_MS[match[2] as string] as number);
  return ms > 0 && Number.isFinite(ms) ? ms : undefined;
}
