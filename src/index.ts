export type { CalendarUnit } from './calendar.js';
export type {
  CeilingStore,
  GrantReply,
  LeaseCall,
  LeaseReply,
  RefusalReply,
  ReplyHead,
  WindowCall,
} from './ceiling/ceiling-store.js';
export type { Mark, MarkCall, MarkFeed, MarkReply, MarkStore } from './ceiling/mark-store.js';
export type { NodeRedis } from './ceiling/node-redis.js';
export type { PaceCall, PaceReply, PaceStore } from './ceiling/pace-store.js';
export type { RedisClient } from './ceiling/redis-client.js';
export type { SeatCall, SeatReply, SeatStore } from './ceiling/seat-store.js';
export { createLimiter } from './create-limiter.js';
export {
  CeilingError,
  ClosedError,
  CostAboveBurstError,
  ERROR_CODES,
  type ErrorCode,
  HeadgateError,
  InvalidCostError,
  InvalidKeyError,
  InvalidOptionError,
  InvalidPolicyError,
  MissingPeerError,
  PolicyConflictError,
  PolicySourceError,
  RedisClientError,
  UnknownPolicyError,
} from './errors.js';
export { compoundKey } from './key/compound-key.js';
export type { AcquireAllOptions, AcquireOptions, EnterOptions } from './limiter/acquire-options.js';
export type { Allowed, Decision, Denial, Denied } from './limiter/decision.js';
export type { KeyHandle } from './limiter/key-handle.js';
export type { Limiter } from './limiter/limiter.js';
export type { LimiterOptions } from './limiter/options.js';
export type { PolicyLimiter } from './limiter/policy-limiter.js';
export type { Block, BlockOptions } from './mark/block.js';
export { memoryPolicySource } from './policy/memory-source.js';
export type { NatsConnection } from './policy/nats-client.js';
export type { NatsPolicySourceOptions } from './policy/nats-policies.js';
export { natsPolicySource } from './policy/nats-source.js';
export { parsePolicy } from './policy/parse-policy.js';
export type { Pattern } from './policy/pattern.js';
export type {
  Algorithm,
  AlgorithmTerms,
  CeilingTerms,
  CeilingTier,
  ConcurrencyDocument,
  ConcurrencyTerms,
  FixedWindowDocument,
  Inheritance,
  LeakyBucketDocument,
  LocalTerms,
  LocalTier,
  OutageMode,
  OverrideDocument,
  PatternTerms,
  Policy,
  PolicyDocument,
  PolicyMode,
  RateDocument,
  SlidingWindowDocument,
  StoreLoss,
  Terms,
  TierDocument,
  Windows,
} from './policy/policy.js';
export type { PolicyListener, PolicySource, PolicyUpdate } from './policy/policy-source.js';
export type { PolicyBook, PublishOptions } from './policy/publisher.js';
export type { NoSeat, Seat, SeatRefusal, TakenSeat } from './seat/seat.js';
export type {
  DecisionMessage,
  DegradedMessage,
  DiagnosticsMessages,
  LeaseMessage,
  PolicyMessage,
} from './telemetry/diagnostics.js';
export {
  type AllowedNote,
  type AllowedWatch,
  type DegradedChange,
  type DenialNote,
  type DenialReason,
  type LimitedBy,
  type Observer,
  type PolicyChange,
  type PolicyCounters,
  type PolicyGauges,
  type Readings,
  type RoundTripEnd,
  type RoundTripStart,
  silentObserver,
} from './telemetry/observer.js';
export type { Random, Time, Timer } from './time.js';
export type { EpochMilliseconds, Microseconds, MicroTokens, Milliseconds, Period, Tokens } from './units.js';
export { DeniedError } from './verb/denied-error.js';
export {
  type PartialDecision,
  peek,
  penalise,
  type ReserveOptions,
  refund,
  reserve,
  upTo,
} from './verb/one-limit.js';
export type { Reservation } from './verb/reservation.js';
export { type ScheduleOptions, schedule, type WrapHandleOptions, type WrapOptions, wrap } from './verb/schedule.js';
export {
  type AllAllowed,
  acquireAll,
  decideAll,
  type JointDecision,
  type Limit,
  type NotAllAllowed,
} from './verb/several.js';
export { VERSION } from './version.js';
