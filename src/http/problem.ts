import type { DenialReason, Denied } from '../index.js';

/** The body of a denial: problem details (RFC 9457) of a type that the RateLimit draft defines. */
export interface ProblemDetails {
  readonly type: string;
  readonly title: string;
  /** The status of the response. */
  readonly status: number;
  readonly detail: string;
  /** The names of the policies that denied. */
  readonly 'violated-policies': readonly string[];
}

const REGISTRY = 'https://iana.org/assignments/http-problem-types';

/** Kinds of problems, the one that decides the status first. */
const PROBLEMS = {
  /** Waiting doesn't help, and neither does asking again. */
  refused: { status: 403, type: 'about:blank', title: 'Forbidden' },
  /** The caller has used up what it may. */
  quota: {
    status: 429,
    type: `${REGISTRY}#quota-exceeded`,
    title: 'Request cannot be satisfied as assigned quota has been exceeded',
  },
  /** The caller has done nothing wrong: we can't decide, or have no room for another key. */
  capacity: {
    status: 503,
    type: `${REGISTRY}#temporary-reduced-capacity`,
    title: 'Request cannot be satisfied due to temporary server capacity constraints',
  },
} as const;

type Kind = keyof typeof PROBLEMS;

const KIND_OF: Readonly<Record<DenialReason, Kind>> = {
  empty: 'quota',
  'queue-full': 'quota',
  blocked: 'quota',
  cold: 'capacity',
  expired: 'capacity',
  degraded: 'capacity',
  overflow: 'capacity',
  closed: 'capacity',
  'cost-above-burst': 'refused',
  'denied-by-policy': 'refused',
  paced: 'refused',
};

/** @param retryAfter whole seconds, as Retry-After says; `undefined` where waiting can't help or nobody knows */
export function problemOf(denials: readonly Denied[], retryAfter: number | undefined): ProblemDetails {
  const kinds = new Set(denials.map(({ reason }) => KIND_OF[reason]));
  const kind = (Object.keys(PROBLEMS) as Kind[]).find((one) => kinds.has(one)) as Kind;
  const { status, type, title } = PROBLEMS[kind];
  const policies = denials.map(({ policy }) => policy);
  return { type, title, status, detail: detailOf(kind, denials, retryAfter), 'violated-policies': policies };
}

function detailOf(kind: Kind, denials: readonly Denied[], retryAfter: number | undefined): string {
  const names = denials.map(({ policy }) => `"${policy}"`).join(', ');
  const when = retryAfter === undefined ? '' : ` Retry in ${retryAfter} ${retryAfter === 1 ? 'second' : 'seconds'}.`;
  switch (kind) {
    case 'refused':
      return denials.some(({ reason }) => reason === 'cost-above-burst')
        ? `This request costs more than ${names} ever allows at once.`
        : `Requests of this caller are refused by ${names}.`;
    case 'quota':
      return denials.some(({ reason }) => reason === 'blocked')
        ? `Requests of this caller are held off by ${names}.${when}`
        : `The quota ${names} is used up.${when}`;
    case 'capacity':
      return `The quota ${names} can't be checked right now.${when}`;
  }
}
