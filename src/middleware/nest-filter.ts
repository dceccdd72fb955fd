import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { LimitResponse } from '../http/index.js';

/** A request was denied. Thrown by the guard and answered by the module, unless a filter of yours catches it first. */
export class RateLimitException extends HttpException {
  readonly limitResponse: LimitResponse;

  constructor(limitResponse: LimitResponse) {
    super(bodyOf(limitResponse), limitResponse.status);
    this.limitResponse = limitResponse;
  }
}

/** Answers a denied request as every other adaptor does; the guard has set the header fields. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  readonly #adapter: AbstractHttpAdapter;

  constructor(adapter: AbstractHttpAdapter) {
    this.#adapter = adapter;
  }

  catch({ limitResponse }: RateLimitException, host: ArgumentsHost): void {
    const response: unknown = host.switchToHttp().getResponse();
    if (this.#adapter.isHeadersSent(response)) return;
    this.#adapter.reply(response, limitResponse.body, limitResponse.status);
  }
}

Catch(RateLimitException)(RateLimitFilter);

/** The problem as an object, as filters expect it. */
function bodyOf({ headers, body }: LimitResponse): string | Record<string, unknown> {
  return headers['Content-Type']?.endsWith('json') ? JSON.parse(body) : body;
}
