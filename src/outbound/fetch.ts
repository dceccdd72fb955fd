import type { Limiter } from '../index.js';
import { heldBack } from './held-back.js';
import { OutboundGate, type OutboundOptions } from './outbound-gate.js';

export type { OutboundOptions, OutboundRequest } from './outbound-gate.js';

/** As `fetch` is called. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/**
 * A `fetch` that keeps the whole fleet under an upstream's limit: each request waits for its tokens, and nothing is sent
 * while the upstream has asked to be left alone. One that can't be sent in time is answered with a 429 of this process's.
 *
 *     const fetchGithub = limitedFetch(limiter, { policy: 'github' });
 *     const response = await fetchGithub('https://api.github.com/rate_limit');
 *
 * @param fetch what sends; default: the global one
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function limitedFetch(limiter: Limiter, options: OutboundOptions, fetch: Fetch = globalThis.fetch): Fetch {
  const gate = new OutboundGate(limiter, options);
  return async (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const url = new URL(request?.url ?? String(input));
    const method = init?.method ?? request?.method ?? 'GET';
    const leave = await gate.leave({ url, method }, init?.signal ?? request?.signal);
    if (!leave.granted) {
      const { status, headers, body } = heldBack(leave);
      return new Response(body, { status, headers });
    }
    const response = await fetch(input, init);
    leave.answered(response.status, (name) => response.headers.get(name) ?? undefined);
    return response;
  };
}
