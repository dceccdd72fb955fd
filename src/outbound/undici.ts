import type { Dispatcher } from 'undici';
import type { LimitResponse } from '../http/index.js';
import type { Limiter } from '../index.js';
import { heldBack } from './held-back.js';
import { OutboundGate, type OutboundOptions } from './outbound-gate.js';

export type { OutboundOptions, OutboundRequest } from './outbound-gate.js';

type Handler = Dispatcher.DispatchHandler;
type Controller = Dispatcher.DispatchController;
type Headers = Parameters<NonNullable<Handler['onResponseStart']>>[2];

/**
 * Interceptor for undici 7 and 8 that keeps the whole fleet under an upstream's limit: each request waits for its tokens,
 * and nothing is sent while the upstream has asked to be left alone. One that can't be sent in time is answered with a
 * 429 of this process's.
 *
 *     const agent = new Agent().compose(rateLimit(limiter, { policy: 'github' }));
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: OutboundOptions): Dispatcher.DispatcherComposeInterceptor {
  const gate = new OutboundGate(limiter, options);
  return (dispatch) => (request, handler) => {
    const url = new URL(request.path, request.origin);
    const { signal } = request as { signal?: unknown };
    const abort = signal instanceof AbortSignal ? signal : undefined;
    gate
      .leave({ url, method: request.method }, abort)
      .then((leave) => {
        if (!leave.granted) answer(handler, heldBack(leave));
        else {
          dispatch(
            request,
            new WatchedHandler(handler, (status, headers) => leave.answered(status, (name) => textOf(headers[name]))),
          );
        }
      })
      .catch((error: Error) => handler.onResponseError?.(new LocalController(), error));
    return true;
  };
}

/** Hands everything on, and looks at the head of the response. */
class WatchedHandler implements Handler {
  readonly #inner: Handler;
  readonly #watch: (status: number, headers: Headers) => void;

  constructor(inner: Handler, watch: (status: number, headers: Headers) => void) {
    this.#inner = inner;
    this.#watch = watch;
  }

  onRequestStart(controller: Controller, context: unknown): void {
    this.#inner.onRequestStart?.(controller, context);
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Handler['onRequestUpgrade']>>): void {
    this.#inner.onRequestUpgrade?.(...args);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers, message?: string): void {
    this.#watch(status, headers);
    this.#inner.onResponseStart?.(controller, status, headers, message);
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    this.#inner.onResponseData?.(controller, chunk);
  }

  onResponseEnd(controller: Controller, trailers: Headers): void {
    this.#inner.onResponseEnd?.(controller, trailers);
  }

  onResponseError(controller: Controller, error: Error): void {
    this.#inner.onResponseError?.(controller, error);
  }
}

/** Controls a response that is here as a whole already: there is nothing to pause. */
class LocalController implements Controller {
  #reason: Error | null = null;

  get aborted(): boolean {
    return this.#reason !== null;
  }

  get paused(): boolean {
    return false;
  }

  get reason(): Error | null {
    return this.#reason;
  }

  rawHeaders: Buffer[] = [];
  rawTrailers: Buffer[] = [];

  abort(reason: Error): void {
    this.#reason ??= reason;
  }

  pause(): void {}

  resume(): void {}
}

/** Answers a request with a response that nobody sent. */
function answer(handler: Handler, { status, headers, body }: LimitResponse): void {
  const controller = new LocalController();
  const fields = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  controller.rawHeaders = Object.entries(fields).flatMap(([name, value]) => [Buffer.from(name), Buffer.from(value)]);
  const steps = [
    () => handler.onRequestStart?.(controller, null),
    () => handler.onResponseStart?.(controller, status, fields, 'Too Many Requests'),
    () => handler.onResponseData?.(controller, Buffer.from(body)),
    () => handler.onResponseEnd?.(controller, {}),
  ];
  for (const step of steps) {
    step();
    if (controller.reason !== null) throw controller.reason;
  }
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}
