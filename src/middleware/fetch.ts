import type { LimitResponse } from '../http/index.js';
import type { Limiter } from '../index.js';
import { Gate } from './gate.js';
import type { GateOptions } from './gate-options.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export { rulingsOf } from './rulings-of.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/** A handler of the Fetch kind, with whatever its host hands it besides the request. */
export type FetchHandler<Rest extends readonly unknown[]> = (
  request: Request,
  ...rest: Rest
) => Response | Promise<Response>;

/** Options where requests carry no address: who is limited has to be said. */
export type FetchOptions = GateOptions<Request> & Required<Pick<GateOptions<Request>, 'key'>>;

/**
 * Limits any `(Request) => Response`: a Next.js route handler, a service worker, a function of a cloud.
 *
 *     export const GET = rateLimit(limiter, { policy: 'api', key: (request) => userOf(request) }, handler);
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit<Rest extends readonly unknown[]>(
  limiter: Limiter,
  options: FetchOptions,
  handler: FetchHandler<Rest>,
): (request: Request, ...rest: Rest) => Promise<Response> {
  const gate = new Gate<Request>(limiter, options);
  return async (request, ...rest) => {
    const passage = await gate.pass(request, request, request.signal);
    // Nobody reads this answer; the status is that of nginx for a client that hung up.
    if (passage.outcome === 'gone') return new Response(null, { status: 499 });
    if (passage.outcome === 'denied') return fetchResponse(passage.response);
    if (passage.outcome === 'skipped') return handler(request, ...rest);
    let response: Response | undefined;
    try {
      response = await handler(request, ...rest);
    } finally {
      passage.settle?.({ status: response?.status ?? 500, finished: response !== undefined });
    }
    if (options.shadow) return response;
    // Not those of the passage: a gate around the handler may have had its say meanwhile.
    return withHeaders(response, gate.headersOf(request));
  };
}

/** A denial as a Fetch response. */
export function fetchResponse({ status, headers, body }: LimitResponse): Response {
  return new Response(body, { status, headers });
}

/** The response with more headers: the same one where it lets them be set, as those of `Response.redirect` don't. */
function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const entries = Object.entries(headers);
  try {
    for (const [name, value] of entries) response.headers.set(name, value);
    return response;
  } catch {
    const copy = new Response(response.body, response);
    for (const [name, value] of entries) copy.headers.set(name, value);
    return copy;
  }
}
