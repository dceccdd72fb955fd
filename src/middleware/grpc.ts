import {
  Metadata,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
  type ServerInterceptor,
  status,
} from '@grpc/grpc-js';
import type { Limiter } from '../index.js';
import { trustedProxies } from '../key/index.js';
import type { AddressSource } from './client-address.js';
import { Gate, type Passage } from './gate.js';
import type { GateOptions } from './gate-options.js';
import { hopsOf, type TrustOptions } from './node-exchange.js';
import { rpcStatus } from './rpc-status.js';

export type { DeniedRequest, GateOptions, PolicyChoice, PolicyRule } from './gate-options.js';
export type { TrustOptions } from './node-exchange.js';
export type { SetupWarning, SetupWarningCode } from './setup-warnings.js';

/** A call as it begins: what can be known of it before its first message. */
export interface GrpcCall {
  /** Such as `/library.Books/List`. */
  readonly method: string;
  readonly metadata: Metadata;
  /** The other end of the connection, such as `192.0.2.1:50123`. */
  readonly peer: string;
  /** Who the client has proved to be, where TLS asked for it. */
  readonly auth: ReturnType<ServerInterceptingCallInterface['getAuthContext']>;
}

/** Options for gRPC. What is told in HTTP fields is not told here. */
export interface GrpcRateLimitOptions
  extends Omit<GateOptions<GrpcCall>, 'headers' | 'partition' | 'response'>,
    TrustOptions {
  /** Told what `key`, `cost`, `skip` or `policy` threw; the call ends as INTERNAL. Default: a process warning. */
  readonly onError?: (error: Error) => void;
}

type EndOfCall = Parameters<ServerInterceptingCallInterface['sendStatus']>[0];

/** Signed 32 bits, as the trailer is read (gRFC A6): about 24 days. */
const LONGEST_PUSHBACK_MS = 2_147_483_647;

/**
 * Server interceptor for `@grpc/grpc-js`. A call of any kind is limited when it begins; the messages of a stream are not.
 *
 *     new Server({ interceptors: [rateLimit(limiter, { policy: 'api' })] });
 *
 * A denied call ends as RESOURCE_EXHAUSTED (UNAVAILABLE where the limiter can't tell, PERMISSION_DENIED where the policy
 * denies everything), with a RetryInfo and the trailer `grpc-retry-pushback-ms`: negative where no retry would help.
 *
 * @throws {InvalidOptionError} {@link UnknownPolicyError}
 */
export function rateLimit(limiter: Limiter, options: GrpcRateLimitOptions): ServerInterceptor {
  const { onError = (error) => process.emitWarning(error), trustedProxies: ranges = [], ...rest } = options;
  const gate = new Gate<GrpcCall>(limiter, { ...rest, headers: [] }, addresses(ranges));
  return ({ path }, call) => {
    const gone = new AbortController();
    let settle: (Passage & { outcome: 'allowed' })['settle'];
    return new ServerInterceptingCall(call, {
      sendStatus: (ended, next) => {
        settle?.({ status: ended.code ?? status.OK, finished: true });
        next(ended);
      },
      start: (next) =>
        next({
          onCancel: () => {
            gone.abort();
            settle?.({ status: status.CANCELLED, finished: false });
          },
          onReceiveMetadata: (metadata, proceed) => {
            const begun = { method: path, metadata, peer: call.getPeer(), auth: call.getAuthContext() };
            gate.pass(begun, metadata, gone.signal).then(
              (passage) => {
                if (passage.outcome === 'denied') call.sendStatus(statusOf(passage));
                if (passage.outcome === 'allowed') settle = passage.settle;
                if (passage.outcome === 'allowed' || passage.outcome === 'skipped') proceed(metadata);
              },
              (error: Error) => {
                call.sendStatus({
                  code: status.INTERNAL,
                  details: 'The rate limit of this call could not be looked up.',
                });
                onError(error);
              },
            );
          },
        }),
    });
  };
}

function statusOf({ response, rulings }: Passage & { outcome: 'denied' }): EndOfCall {
  const denials = rulings.map(({ decision }) => decision).filter((decision) => !decision.allowed);
  const code = codeOf(
    response.status,
    denials.some(({ reason }) => reason === 'cost-above-burst'),
  );
  const { detail } = JSON.parse(response.body) as { detail: string };
  const { retryAfterMs } = response;
  const metadata = new Metadata();
  metadata.set('grpc-retry-pushback-ms', String(pushbackOf(retryAfterMs)));
  const policies = denials.map(({ policy }) => policy);
  metadata.set('grpc-status-details-bin', Buffer.from(rpcStatus({ code, message: detail, retryAfterMs, policies })));
  return { code, details: detail, metadata };
}

/** PERMISSION_DENIED is not for what is used up (google/rpc/code.proto), so a cost too high is no such case. */
function codeOf(httpStatus: number, costTooHigh: boolean): status {
  if (httpStatus === 503) return status.UNAVAILABLE;
  return httpStatus === 403 && !costTooHigh ? status.PERMISSION_DENIED : status.RESOURCE_EXHAUSTED;
}

function pushbackOf(retryAfterMs: number | undefined): number {
  return retryAfterMs === undefined ? -1 : Math.min(LONGEST_PUSHBACK_MS, Math.ceil(retryAfterMs));
}

function addresses(ranges: readonly string[]): AddressSource<GrpcCall> {
  const proxies = trustedProxies(ranges);
  const forwardedFor = ({ metadata }: GrpcCall): string[] => metadata.get('x-forwarded-for').map(String);
  return {
    addressOf: (call) => proxies.clientOf(call.peer, hopsOf(forwardedFor(call))),
    trustOf: () => (ranges.length > 0 ? 'some' : 'nobody'),
    forwardedFor: (call) => (forwardedFor(call).length > 0 ? true : undefined),
  };
}
