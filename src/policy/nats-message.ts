import type { EpochMilliseconds } from '../units.js';
import { policyFromMessage } from './codec.js';
import type { NatsHeaders } from './nats-client.js';
import type { PolicyUpdate } from './policy-source.js';

/** Header with the publisher's wall clock, in ms: the propagation lag is counted from it. */
const SENT_AT = 'Headgate-Sent-At';
/** Headers that belong to NATS or to us; all others are the publisher's trace context. */
const NOT_TRACE = /^(?:Nats|KV|Headgate)-/i;

/** The headers of a policy message, alike on the stored one and on the hint. */
export function policyHeaders(
  sentAt: EpochMilliseconds,
  trace: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  return { ...trace, [SENT_AT]: String(sentAt) };
}

/** The update in a policy message. Bytes that can't be decoded stay bytes: whoever parses them says why. */
export function policyUpdate(
  name: string,
  message: Uint8Array,
  via: PolicyUpdate['via'],
  headers: NatsHeaders | undefined,
  storedAt?: EpochMilliseconds,
): PolicyUpdate {
  // How long ago a policy was published says nothing about a limiter that has only just started to watch.
  const publishedAt = via === 'snapshot' ? undefined : (sentAt(headers) ?? storedAt);
  const trace = traceOf(headers);
  return {
    name,
    document: decoded(message),
    via,
    ...(publishedAt !== undefined && { publishedAt }),
    ...(trace && { trace }),
  };
}

function decoded(message: Uint8Array): unknown {
  try {
    return policyFromMessage(message);
  } catch {
    return message;
  }
}

function sentAt(headers: NatsHeaders | undefined): EpochMilliseconds | undefined {
  const sent = Number(headers?.get(SENT_AT) || Number.NaN);
  return Number.isFinite(sent) ? sent : undefined;
}

function traceOf(headers: NatsHeaders | undefined): Readonly<Record<string, string>> | undefined {
  if (!headers) return undefined;
  const names = [...headers.keys()].filter((name) => !NOT_TRACE.test(name));
  return names.length === 0 ? undefined : Object.fromEntries(names.map((name) => [name, headers.get(name)]));
}
