import type { EpochMilliseconds } from '../units.js';
import type { Standing } from './standing.js';
import { listMember, type Parameters } from './structured-field.js';

/**
 * How limits are told in header fields:
 *
 * - `draft-10`: `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10, and the same bytes in -11
 * - `draft-12`: as proposed for its newest revision, with `a` and `w` in place of `r` and `t`, and the request's cost
 * - `draft-8`: the same two as express-rate-limit writes them, with `t` until all of the quota is there
 * - `draft-7`: `RateLimit: limit=…, remaining=…, reset=…`
 * - `draft-6`: `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`
 * - `legacy`: `X-RateLimit-Limit`, `-Remaining`, and `-Reset` in seconds since 1970
 */
export const HEADER_DIALECTS = ['draft-10', 'draft-12', 'draft-8', 'draft-7', 'draft-6', 'legacy'] as const;

export type HeaderDialect = (typeof HEADER_DIALECTS)[number];

/** Header fields by name, written as they are sent. */
export type HeaderFields = Record<string, string>;

type Render = (standings: readonly Standing[], wallNow: EpochMilliseconds) => HeaderFields;

/**
 * The fields that tell where a client stands. Dialects with lists show every policy; in the others, which have room for
 * one, it is the one that will stop the client first.
 */
export function limitFields(
  dialect: HeaderDialect,
  standings: readonly Standing[],
  wallNow: EpochMilliseconds,
): HeaderFields {
  return standings.length === 0 ? {} : RENDER[dialect](standings, wallNow);
}

const RENDER: Readonly<Record<HeaderDialect, Render>> = {
  'draft-10': (standings) =>
    twoLists(
      policyList(standings),
      currentList(standings, (one) => ({ r: one.remaining, t: one.windowSeconds, pk: one.partition })),
    ),
  'draft-12': (standings) =>
    twoLists(
      policyList(standings),
      currentList(standings, (one) => ({
        a: one.remaining,
        w: one.windowSeconds,
        c: Math.ceil(one.cost),
        pk: one.partition,
      })),
    ),
  'draft-8': (standings) =>
    twoLists(
      policyList(standings, ' '),
      currentList(standings, (one) => ({ r: one.remaining, t: one.resetSeconds, pk: one.partition }), ' '),
    ),
  'draft-7': (standings) => {
    const { quota, remaining, resetSeconds } = tightest(standings);
    return {
      'RateLimit-Policy': windowList(standings),
      ...(remaining !== undefined && {
        RateLimit: [
          `limit=${quota.tokens}, remaining=${remaining}`,
          ...(resetSeconds === undefined ? [] : [`reset=${resetSeconds}`]),
        ].join(', '),
      }),
    };
  },
  'draft-6': (standings) => {
    const { quota, remaining, resetSeconds } = tightest(standings);
    return {
      'RateLimit-Policy': windowList(standings),
      'RateLimit-Limit': String(quota.tokens),
      ...optional('RateLimit-Remaining', remaining),
      ...optional('RateLimit-Reset', resetSeconds),
    };
  },
  legacy: (standings, wallNow) => {
    const { quota, remaining, resetSeconds } = tightest(standings);
    const resetAt = resetSeconds === undefined ? undefined : Math.ceil(wallNow / 1_000) + resetSeconds;
    return {
      'X-RateLimit-Limit': String(quota.tokens),
      ...optional('X-RateLimit-Remaining', remaining),
      ...optional('X-RateLimit-Reset', resetAt),
    };
  },
};

function twoLists(policies: string, current: string | undefined): HeaderFields {
  const fields: HeaderFields = { 'RateLimit-Policy': policies };
  if (current !== undefined) fields['RateLimit'] = current;
  return fields;
}

function policyList(standings: readonly Standing[], gap: '' | ' ' = ''): string {
  let list = '';
  for (const { name, quota, partition } of standings) {
    const member = listMember(name, { q: quota.tokens, w: quota.windowSeconds, pk: partition }, gap);
    list = list === '' ? member : `${list}, ${member}`;
  }
  return list;
}

/** Those of which something is known; after a denial only those that denied, for Retry-After is about them. */
function currentList(
  standings: readonly Standing[],
  parameters: (standing: Standing) => Parameters,
  gap: '' | ' ' = '',
): string | undefined {
  const denying = standings.some(({ denied }) => denied);
  let list: string | undefined;
  for (const one of standings) {
    if (one.remaining === undefined || (denying && !one.denied)) continue;
    const member = listMember(one.name, parameters(one), gap);
    list = list === undefined ? member : `${list}, ${member}`;
  }
  return list;
}

/** `10;w=1, 1000;w=86400`, as drafts 6 and 7 have it. */
function windowList(standings: readonly Standing[]): string {
  return standings.map(({ quota }) => listMember(quota.tokens, { w: quota.windowSeconds })).join(', ');
}

/** The one that denied until last; else the one with least left. */
function tightest(standings: readonly Standing[]): Standing {
  return standings.reduce((tightest, one) => (isTighter(one, tightest) ? one : tightest));
}

function isTighter(one: Standing, other: Standing): boolean {
  if (one.denied !== other.denied) return one.denied;
  const left = (one.remaining ?? Number.POSITIVE_INFINITY) - (other.remaining ?? Number.POSITIVE_INFINITY);
  if (!one.denied && left !== 0) return left < 0;
  return (one.resetSeconds ?? Number.POSITIVE_INFINITY) > (other.resetSeconds ?? Number.POSITIVE_INFINITY);
}

function optional(name: string, value: string | number | undefined): HeaderFields {
  return value === undefined ? {} : { [name]: String(value) };
}
