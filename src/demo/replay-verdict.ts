import type { Milliseconds } from '../index.js';
import { ExactBuckets } from './exact-buckets.js';
import { type CeilingTerms, isBroken, type WorstWindow, worstWindows } from './window-bound.js';

/** What became of one request, on the host's clock. */
export interface ReplayedRequest {
  readonly client: string;
  /** When it was handed to its instance's limiter. */
  readonly arrivedAt: Milliseconds;
  /** When the client's ceiling gave a token; `undefined` where it did not. */
  readonly clientAt: Milliseconds | undefined;
  /** When the global one did: then the request was admitted. */
  readonly globalAt: Milliseconds | undefined;
  /** Why it was denied; '' where it was not. */
  readonly reason: string;
}

export interface ReplayVerdict {
  readonly ok: boolean;
  readonly requests: number;
  readonly admitted: number;
  /** What exact buckets admit of the same arrivals. */
  readonly exactAdmitted: number;
  readonly ratio: number;
  readonly deniedByClient: number;
  readonly deniedByGlobal: number;
  /** Requests by why they were denied. */
  readonly reasons: Readonly<Record<string, number>>;
  /** Of a client's worst window, over all clients; of all windows of the global ceiling. */
  readonly clientWindow: (WorstWindow & { readonly client: string }) | undefined;
  readonly globalWindow: WorstWindow | undefined;
  /** Clients that had a window above their bound. */
  readonly brokenClients: readonly string[];
  readonly clients: number;
  readonly mostDenied: readonly { readonly client: string; readonly denied: number; readonly requests: number }[];
}

/** How many clients are shown. */
const SHOWN = 8;
/** What the exact buckets would have admitted must be met to this degree. */
export const EXPECTED_RATIO = 0.99;

/**
 * Judges a replay. A client is held to its bound by all tokens its ceiling gave, those of requests that the global one
 * denied afterwards included.
 */
export function judgeReplay(
  requests: readonly ReplayedRequest[],
  clientTerms: CeilingTerms,
  globalTerms: CeilingTerms,
): ReplayVerdict {
  const sorted = requests.toSorted((a, b) => a.arrivedAt - b.arrivedAt);
  const origin = sorted[0]?.arrivedAt ?? 0;
  const exact = new ExactBuckets(clientTerms, globalTerms);
  let exactAdmitted = 0;
  const clients = new Map<string, { times: number[]; requests: number; denied: number }>();
  const globalTimes: number[] = [];
  const reasons: Record<string, number> = {};
  let deniedByClient = 0;
  for (const { client, arrivedAt, clientAt, globalAt, reason } of sorted) {
    if (exact.admit(client, arrivedAt)) exactAdmitted += 1;
    const seen = clients.get(client) ?? { times: [], requests: 0, denied: 0 };
    clients.set(client, seen);
    seen.requests += 1;
    if (clientAt !== undefined) seen.times.push(clientAt - origin);
    else deniedByClient += 1;
    if (globalAt !== undefined) globalTimes.push(globalAt - origin);
    else {
      seen.denied += 1;
      reasons[reason] = (reasons[reason] ?? 0) + 1;
    }
  }
  let clientWindow: ReplayVerdict['clientWindow'];
  const brokenClients: string[] = [];
  for (const [client, { times }] of clients) {
    const [window] = worstWindows(Float64Array.from(times).sort(), clientTerms);
    if (!window) continue;
    if (isBroken(window)) brokenClients.push(client);
    if (!clientWindow || window.headroom < clientWindow.headroom) clientWindow = { ...window, client };
  }
  const [globalWindow] = worstWindows(Float64Array.from(globalTimes).sort(), globalTerms);
  const admitted = globalTimes.length;
  return {
    ok: brokenClients.length === 0 && !(globalWindow && isBroken(globalWindow)),
    requests: sorted.length,
    admitted,
    exactAdmitted,
    ratio: exactAdmitted === 0 ? 1 : admitted / exactAdmitted,
    deniedByClient,
    deniedByGlobal: sorted.length - admitted - deniedByClient,
    reasons,
    clientWindow,
    globalWindow,
    brokenClients,
    clients: clients.size,
    mostDenied: [...clients]
      .filter(([, { denied }]) => denied > 0)
      .sort(([, a], [, b]) => b.denied - a.denied)
      .slice(0, SHOWN)
      .map(([client, { denied, requests }]) => ({ client, denied, requests })),
  };
}
