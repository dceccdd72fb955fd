import type { Milliseconds } from '../units.js';

/** What a denied call is told besides its code. */
export interface RpcDenial {
  readonly code: number;
  readonly message: string;
  /** `undefined`: no time to come back at. */
  readonly retryAfterMs: Milliseconds | undefined;
  readonly policies: readonly string[];
}

/**
 * A `google.rpc.Status` in protobuf's encoding, for the trailer `grpc-status-details-bin`: with a `RetryInfo` where
 * there is a time to come back at, and a `QuotaFailure` that names the policies.
 *
 * The fields are those of google/rpc/status.proto and google/rpc/error_details.proto.
 */
export function rpcStatus({ code, message, retryAfterMs, policies }: RpcDenial): Uint8Array {
  const violations = policies.map((name) => bytes(1, [...text(1, name), ...text(2, 'The quota is used up.')]));
  return Uint8Array.from([
    ...int(1, code),
    ...text(2, message),
    ...(retryAfterMs === undefined ? [] : any('google.rpc.RetryInfo', bytes(1, duration(retryAfterMs)))),
    ...any('google.rpc.QuotaFailure', violations.flat()),
  ]);
}

/** A detail of the status: `google.protobuf.Any` in its field 3. */
function any(type: string, value: readonly number[]): number[] {
  return bytes(3, [...text(1, `type.googleapis.com/${type}`), ...bytes(2, value)]);
}

/** `google.protobuf.Duration`, in whole ms rounded up. */
function duration(ms: Milliseconds): number[] {
  const whole = Math.ceil(ms);
  return [...int(1, Math.floor(whole / 1_000)), ...int(2, (whole % 1_000) * 1_000_000)];
}

function int(field: number, value: number): number[] {
  return [...varint(field * 8), ...varint(value)];
}

function text(field: number, value: string): number[] {
  return bytes(field, [...new TextEncoder().encode(value)]);
}

function bytes(field: number, value: readonly number[]): number[] {
  return [...varint(field * 8 + 2), ...varint(value.length), ...value];
}

/** Seven bits a byte, the lowest first; the top bit says that more follow. */
function varint(value: number): number[] {
  const encoded: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) encoded.push((rest % 128) + 128);
  return [...encoded, rest];
}
