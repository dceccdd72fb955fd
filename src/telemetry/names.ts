/*
 * Every name headgate emits. The adaptor's types come from these tables, so a name or attribute that is not here does not
 * compile; `docs/reference/telemetry.md` tells an operator what each means, and a test ties the two.
 * Counters are plural by what they count and up-down counters `.count`, as the OpenTelemetry conventions ask. Tokens have
 * a counter for each fate, not one with an attribute: the sum of granted, spent and returned would mean nothing.
 * There is no attribute for a limiter's key, and none may be added: keys have no bound.
 */

interface AttributeRow {
  readonly type: 'string' | 'string[]' | 'int' | 'double' | 'boolean';
  readonly values?: readonly string[];
  readonly description: string;
}

export const ATTRIBUTES = {
  'headgate.policy.name': { type: 'string', description: 'Name of the policy.' },
  'headgate.policy.names': { type: 'string[]', description: 'Names of the policies a round trip carried calls of.' },
  'headgate.policy.version': { type: 'int', description: 'Version of the policy.' },
  'headgate.policy.previous_version': { type: 'int', description: 'Version that was in force before the change.' },
  'headgate.policy.outcome': {
    type: 'string',
    values: ['applied', 'ignored', 'invalid', 'removed'],
    description: 'What became of a policy change.',
  },
  'headgate.policy.via': {
    type: 'string',
    values: ['snapshot', 'watch', 'hint', 'code'],
    description: 'By which road a policy change came.',
  },
  'headgate.decision.outcome': {
    type: 'string',
    values: ['allowed', 'allowed_degraded', 'shadow_denied', 'denied'],
    description: 'What was decided. Every decision has exactly one.',
  },
  'headgate.decision.limited_by': {
    type: 'string',
    values: ['local', 'ceiling', 'policy'],
    description: 'What denied.',
  },
  'headgate.decision.reason': {
    type: 'string',
    values: [
      'empty',
      'cold',
      'expired',
      'degraded',
      'overflow',
      'cost-above-burst',
      'denied-by-policy',
      'closed',
      'queue-full',
      'paced',
      'blocked',
    ],
    description: 'Why the tier denied.',
  },
  'headgate.decision.cost': { type: 'double', description: 'Tokens that were asked for.' },
  'headgate.decision.retry_after': { type: 'double', description: 'Seconds after which the same call could pass.' },
  'headgate.decision.shadow': {
    type: 'boolean',
    description: 'Whether a shadow policy denied, so that the call passed.',
  },
  'headgate.lease.call_count': { type: 'int', description: 'Lease calls that one round trip carried.' },
  'headgate.lease.failed_count': { type: 'int', description: 'How many of them failed.' },
  'headgate.lease.needed_tokens': { type: 'double', description: 'Tokens that waiting callers need now.' },
  'headgate.lease.wanted_tokens': { type: 'double', description: 'Tokens asked for, needed ones included.' },
  'headgate.lease.granted_tokens': { type: 'double', description: 'Tokens the ceiling granted.' },
  'headgate.lease.outcome': {
    type: 'string',
    values: ['answered', 'failed', 'refused'],
    description: 'What became of a lease call; refused calls are too old or from the future, and changed nothing.',
  },
  'headgate.wait.outcome': {
    type: 'string',
    values: ['allowed', 'denied', 'aborted'],
    description: 'How a wait ended.',
  },
  'error.type': {
    type: 'string',
    description: 'Code or class of the error, only where something failed. Never its message, which may quote a key.',
  },
  'messaging.system': { type: 'string', description: 'The system that carried a policy change: `nats`.' },
  'messaging.operation.name': { type: 'string', values: ['process'], description: 'Always `process`.' },
  'messaging.operation.type': { type: 'string', values: ['process'], description: 'Always `process`.' },
  'messaging.destination.template': { type: 'string', description: 'Subject of policy changes, with `{policy}` open.' },
  'messaging.destination.name': { type: 'string', description: 'Subject of the changes of this policy.' },
} as const satisfies Record<string, AttributeRow>;

export type AttributeName = keyof typeof ATTRIBUTES;

interface EmittedRow {
  readonly description: string;
  readonly attributes: readonly AttributeName[];
}

/** Subject of policy changes: the low-cardinality part of a message span's name. */
export const POLICY_DESTINATION = 'headgate.policy.{policy}';

const CHANGE = [
  'headgate.policy.name',
  'headgate.policy.version',
  'headgate.policy.previous_version',
  'headgate.policy.outcome',
  'headgate.policy.via',
  'error.type',
] as const satisfies AttributeName[];

export const SPANS = {
  'headgate.lease': {
    kind: 'internal',
    description:
      'One round trip to the ceiling store, for all calls of a tick. Always a root: it serves many requests.',
    attributes: [
      'headgate.policy.names',
      'headgate.lease.call_count',
      'headgate.lease.failed_count',
      'headgate.lease.needed_tokens',
      'headgate.lease.wanted_tokens',
      'headgate.lease.granted_tokens',
      'error.type',
    ],
  },
  [`process ${POLICY_DESTINATION}`]: {
    kind: 'consumer',
    description: 'A policy change arrived and was applied or refused. A root, linked to the span that published it.',
    attributes: [
      ...CHANGE,
      'messaging.system',
      'messaging.operation.name',
      'messaging.operation.type',
      'messaging.destination.template',
      'messaging.destination.name',
    ],
  },
  'headgate.policy.change': {
    kind: 'internal',
    description: 'A policy change made by code in this process. A child of whatever made it.',
    attributes: CHANGE,
  },
  'headgate.degraded.begin': {
    kind: 'internal',
    description: 'The limiter lost its ceiling store; the outage mode answers from now on.',
    attributes: ['error.type'],
  },
  'headgate.degraded.end': {
    kind: 'internal',
    description: 'The ceiling store is back. The span is as long as the outage.',
    attributes: [],
  },
  'headgate.wait': {
    kind: 'internal',
    description: 'An `acquire` that had to wait. A child of the span that called it.',
    attributes: ['headgate.policy.name', 'headgate.decision.cost', 'headgate.wait.outcome'],
  },
} as const satisfies Record<string, EmittedRow & { readonly kind: 'internal' | 'consumer' }>;

export type SpanName = keyof typeof SPANS;

/** Events on the span that is active in the caller. */
export const EVENTS = {
  'headgate.denied': {
    description: 'A call made within this span was denied, or would have been by a shadow policy.',
    attributes: [
      'headgate.policy.name',
      'headgate.policy.version',
      'headgate.decision.limited_by',
      'headgate.decision.reason',
      'headgate.decision.cost',
      'headgate.decision.retry_after',
      'headgate.decision.shadow',
    ],
  },
} as const satisfies Record<string, EmittedRow>;

export type EventName = keyof typeof EVENTS;

interface MetricRow extends EmittedRow {
  /** The observable ones are read from the limiter's plain counters when a reader collects; the others are recorded. */
  readonly instrument:
    | 'observable counter'
    | 'observable up-down counter'
    | 'observable gauge'
    | 'counter'
    | 'histogram';
  readonly unit: string;
  /** Of a histogram, in its unit. The SDK's own boundaries suit milliseconds, and these are seconds. */
  readonly boundaries?: readonly number[];
}

const BY_POLICY = ['headgate.policy.name'] as const satisfies AttributeName[];

export const METRICS = {
  'headgate.decisions': {
    instrument: 'observable counter',
    unit: '{decision}',
    description: 'Decisions made.',
    attributes: ['headgate.policy.name', 'headgate.decision.outcome', 'headgate.decision.limited_by'],
  },
  'headgate.overflow.decisions': {
    instrument: 'observable counter',
    unit: '{decision}',
    description: 'Decisions made on the shared overflow bucket, as the bound on keys was reached.',
    attributes: BY_POLICY,
  },
  'headgate.blocked.decisions': {
    instrument: 'observable counter',
    unit: '{decision}',
    description: 'Decisions that a block denied, or would have under a shadow policy.',
    attributes: BY_POLICY,
  },
  'headgate.granted.tokens': {
    instrument: 'observable counter',
    unit: '{token}',
    description: 'Tokens leased from the ceiling.',
    attributes: BY_POLICY,
  },
  'headgate.spent.tokens': {
    instrument: 'observable counter',
    unit: '{token}',
    description: 'Leased tokens spent on allowed calls.',
    attributes: BY_POLICY,
  },
  'headgate.returned.tokens': {
    instrument: 'observable counter',
    unit: '{token}',
    description: 'Leased tokens given back unspent.',
    attributes: BY_POLICY,
  },
  'headgate.expired.tokens': {
    instrument: 'observable counter',
    unit: '{token}',
    description: 'Leased tokens lost unspent: lease ended, machine suspended, or reply too late.',
    attributes: BY_POLICY,
  },
  'headgate.unleased.tokens': {
    instrument: 'observable counter',
    unit: '{token}',
    description: 'Tokens spent without a lease, under an outage mode.',
    attributes: BY_POLICY,
  },
  'headgate.held.token.count': {
    instrument: 'observable up-down counter',
    unit: '{token}',
    description: 'Tokens in live wallets now.',
    attributes: BY_POLICY,
  },
  'headgate.seat.requests': {
    instrument: 'observable counter',
    unit: '{request}',
    description: 'Calls of `enter` under a limit of those in flight.',
    attributes: ['headgate.policy.name', 'headgate.decision.outcome'],
  },
  'headgate.held.seat.count': {
    instrument: 'observable up-down counter',
    unit: '{seat}',
    description: 'Seats in use now.',
    attributes: BY_POLICY,
  },
  'headgate.key.count': {
    instrument: 'observable up-down counter',
    unit: '{key}',
    description: 'Keys held in memory now.',
    attributes: BY_POLICY,
  },
  'headgate.waiter.count': {
    instrument: 'observable up-down counter',
    unit: '{call}',
    description: 'Calls of `acquire` that wait now.',
    attributes: BY_POLICY,
  },
  'headgate.blocked.key.count': {
    instrument: 'observable gauge',
    unit: '{key}',
    description: 'Keys known to be blocked now; the most that any limiter of a process knows.',
    attributes: BY_POLICY,
  },
  'headgate.wait.duration': {
    instrument: 'histogram',
    unit: 's',
    description: 'How long calls of `acquire` that had to wait did wait.',
    attributes: ['headgate.policy.name', 'headgate.wait.outcome'],
    boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  },
  'headgate.lease.calls': {
    instrument: 'observable counter',
    unit: '{call}',
    description: 'Lease calls sent to the ceiling store.',
    attributes: ['headgate.policy.name', 'headgate.lease.outcome'],
  },
  'headgate.lease.duration': {
    instrument: 'histogram',
    unit: 's',
    description: 'Duration of round trips to the ceiling store.',
    attributes: ['error.type'],
    boundaries: [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
  },
  'headgate.degraded.count': {
    instrument: 'observable up-down counter',
    unit: '{limiter}',
    description: 'Limiters that decide by the outage mode now.',
    attributes: BY_POLICY,
  },
  'headgate.policy.version': {
    instrument: 'observable gauge',
    unit: '1',
    description: 'Policy version in force; the lowest where several limiters of a process differ.',
    attributes: BY_POLICY,
  },
  'headgate.policy.changes': {
    instrument: 'counter',
    unit: '{change}',
    description: 'Policy changes that reached a limiter.',
    attributes: ['headgate.policy.name', 'headgate.policy.outcome', 'headgate.policy.via'],
  },
  'headgate.policy.conflicts': {
    instrument: 'observable counter',
    unit: '{conflict}',
    description: 'Replies of the ceiling store that reported other terms under the same policy version.',
    attributes: BY_POLICY,
  },
  'headgate.policy.propagation.duration': {
    instrument: 'histogram',
    unit: 's',
    description: 'From the publish of a policy, by the clock of the publisher, to its first use here.',
    attributes: BY_POLICY,
    boundaries: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  },
  'headgate.troubles': {
    instrument: 'counter',
    unit: '{error}',
    description: "Errors that are no caller's: of a policy source, of a connection.",
    attributes: ['error.type'],
  },
} as const satisfies Record<string, MetricRow>;

export type MetricName = keyof typeof METRICS;
