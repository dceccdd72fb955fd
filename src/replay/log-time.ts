import type { Microseconds } from '../units.js';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
/** `17/May/2015:10:05:03 +0200`, as access logs have it. */
const LOG_TIME = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})$/;
/** `2015-05-17T10:05:03.25+02:00` and `2015-05-17 10:05:03Z`: RFC 3339, the offset may be left out. */
const ISO_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?(?:[Zz]|([+-])(\d{2}):?(\d{2}))?$/;
const SECOND: Microseconds = 1_000_000;
/**
 * What a bare number counts, told by its size: each unit fits the years 1973 to 5138 of the one before it, so that
 * no two are mistaken for each other before then.
 */
const UNITS: readonly { readonly below: number; readonly micros: number }[] = [
  { below: 1e11, micros: SECOND },
  { below: 1e14, micros: 1_000 },
  { below: 1e17, micros: 1 },
  { below: 1e20, micros: 1e-3 },
];

/**
 * The moment that a log's text or number tells of, in microseconds since 1970; `undefined` where it is none. Numbers
 * count seconds, milliseconds, microseconds or nanoseconds, by their size. Texts are RFC 3339 (UTC where they name no
 * offset) or as in access logs.
 */
export function logTime(value: unknown): Microseconds | undefined {
  if (typeof value === 'number') return numberTime(value);
  if (typeof value !== 'string') return undefined;
  return (
    accessLogTime(value) ?? isoTime(value) ?? (/^\d+(\.\d+)?$/.test(value) ? numberTime(Number(value)) : undefined)
  );
}

/** The time of an access log: `17/May/2015:10:05:03 +0000`. */
export function accessLogTime(text: string): Microseconds | undefined {
  const match = LOG_TIME.exec(text);
  if (!match) return undefined;
  const [, day, month, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match;
  const monthNumber = String(MONTHS.indexOf(month as string) + 1);
  return moment([year, monthNumber, day, hour, minute, second], zoneOf(sign, zoneHours, zoneMinutes));
}

function isoTime(text: string): Microseconds | undefined {
  const match = ISO_TIME.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, zoneHours, zoneMinutes] = match;
  const whole = moment([year, month, day, hour, minute, second], zoneOf(sign, zoneHours, zoneMinutes));
  return whole === undefined ? undefined : whole + Math.floor(Number(fraction.padEnd(9, '0')) / 1_000);
}

function numberTime(value: number): Microseconds | undefined {
  const unit = value >= 0 ? UNITS.find(({ below }) => value < below) : undefined;
  return unit && Math.floor(value * unit.micros);
}

/** Minutes east of Greenwich; none said: none. */
function zoneOf(sign: string | undefined, hours: string | undefined, minutes: string | undefined): number {
  return sign === undefined ? 0 : (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -1 : 1);
}

/** Checks that the parts are a date: `Date.UTC` makes 3 March of 31 February. A leap second is the next one's first. */
function moment(parts: readonly (string | undefined)[], zone: number): Microseconds | undefined {
  const [year, month, day, hour, minute, second] = parts.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || hour > 23 || minute > 59 || second > 60) return undefined;
  const date = new Date(Date.UTC(year, month - 1, day));
  if (date.getUTCDate() !== day || date.getUTCMonth() !== month - 1) return undefined;
  return (date.getTime() / 1_000 + hour * 3_600 + minute * 60 + second - zone * 60) * SECOND;
}
