import type { Milliseconds, Tokens } from '../units.js';
import { errorType } from './error-type.js';
import type {
  AllowedWatch,
  DegradedChange,
  DenialReason,
  LimitedBy,
  Observer,
  PolicyChange,
  RoundTripEnd,
} from './observer.js';

/** Which limiter of the process a message is about: its `instanceId`. */
interface OfLimiter {
  readonly instanceId: string;
}

/** One call was decided. */
export interface DecisionMessage extends OfLimiter {
  readonly policy: string;
  readonly policyVersion: number;
  readonly allowed: boolean;
  readonly cost: Tokens;
  /** The outage mode decided, as the ceiling store was out of reach. */
  readonly degraded: boolean;
  /** A shadow policy let it pass that would have denied it: the three below say why. */
  readonly shadow: boolean;
  readonly limitedBy: LimitedBy | undefined;
  readonly reason: DenialReason | undefined;
  readonly retryAfterMs: Milliseconds | undefined;
}

/** A round trip to the ceiling store came to its end. */
export interface LeaseMessage extends OfLimiter {
  readonly policies: readonly string[];
  readonly calls: number;
  readonly failed: number;
  readonly need: Tokens;
  readonly want: Tokens;
  readonly granted: Tokens;
  readonly durationMs: Milliseconds;
  /** What kind of error was the first. Never its message, in which servers quote keys. */
  readonly errorType: string | undefined;
}

/** A policy change reached the limiter. */
export interface PolicyMessage extends OfLimiter, Pick<PolicyChange, 'policy' | 'version' | 'previousVersion'> {
  readonly outcome: PolicyChange['outcome'];
  readonly via: PolicyChange['via'];
  readonly lagMs: Milliseconds | undefined;
  readonly errorType: string | undefined;
}

/** The limiter lost or regained its ceiling store. */
export interface DegradedMessage extends OfLimiter, Pick<DegradedChange, 'degraded' | 'forMs'> {
  readonly errorType: string | undefined;
}

/** What is published on each channel of `node:diagnostics_channel`. */
export interface DiagnosticsMessages {
  readonly 'headgate:decision': DecisionMessage;
  readonly 'headgate:lease': LeaseMessage;
  readonly 'headgate:policy': PolicyMessage;
  readonly 'headgate:degraded': DegradedMessage;
}

/** A channel, as far as it is used: its own getter of `hasSubscribers` is as cheap as a property. */
interface Topic<Message> {
  readonly hasSubscribers: boolean;
  publish(message: Message): void;
}

/**
 * An observer that tells `observer`, and beside it whoever subscribes to the channels of {@link DiagnosticsMessages}.
 * Without subscribers no message is made. Where there are no channels (a browser) it is `observer` itself.
 *
 * A subscriber that throws stops nobody: Node raises its error later, in a tick of its own.
 */
export function diagnosticsObserver(observer: Observer, instanceId: string): Observer {
  const diagnostics = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel');
  if (!diagnostics) return observer;
  const channelOf = <Name extends keyof DiagnosticsMessages>(name: Name): Topic<DiagnosticsMessages[Name]> =>
    diagnostics.channel(name);
  const decision = channelOf('headgate:decision');
  const lease = channelOf('headgate:lease');
  const policy = channelOf('headgate:policy');
  const degraded = channelOf('headgate:degraded');
  const typeOf = (error: Error | undefined) => (error ? errorType(error) : undefined);

  return {
    ...observer,
    allowedWatch: either(decision, observer.allowedWatch),
    allowed(note) {
      if (observer.allowedWatch?.hasSubscribers) observer.allowed?.(note);
      if (!decision.hasSubscribers) return;
      decision.publish({
        instanceId,
        policy: note.policy,
        policyVersion: note.policyVersion,
        allowed: true,
        cost: note.cost,
        degraded: note.degraded,
        shadow: false,
        limitedBy: undefined,
        reason: undefined,
        retryAfterMs: undefined,
      });
    },
    watchesDenials: () => decision.hasSubscribers || observer.watchesDenials(),
    denied(note) {
      if (observer.watchesDenials()) observer.denied(note);
      if (!decision.hasSubscribers) return;
      const { shadow, limitedBy, reason, retryAfterMs } = note;
      decision.publish({
        instanceId,
        policy: note.policy,
        policyVersion: note.policyVersion,
        allowed: shadow,
        cost: note.cost,
        degraded: reason === 'degraded',
        shadow,
        limitedBy,
        reason,
        retryAfterMs,
      });
    },
    roundTrip(start, send) {
      const end = observer.roundTrip(start, send);
      if (!lease.hasSubscribers) return end;
      const { policies, calls, need, want } = start;
      return (outcome: RoundTripEnd) => {
        end(outcome);
        const { granted, failed, durationMs, error } = outcome;
        lease.publish({
          instanceId,
          policies,
          calls,
          failed,
          need,
          want,
          granted,
          durationMs,
          errorType: typeOf(error),
        });
      };
    },
    policyChanged(change) {
      observer.policyChanged(change);
      if (!policy.hasSubscribers) return;
      const { version, previousVersion, outcome, via, lagMs, error } = change;
      policy.publish({
        instanceId,
        policy: change.policy,
        version,
        previousVersion,
        outcome,
        via,
        lagMs,
        errorType: typeOf(error),
      });
    },
    degradedChanged(change) {
      observer.degradedChanged(change);
      if (!degraded.hasSubscribers) return;
      degraded.publish({
        instanceId,
        degraded: change.degraded,
        forMs: change.forMs,
        errorType: typeOf(change.error),
      });
    },
  };
}

function either(one: AllowedWatch, other: AllowedWatch | undefined): AllowedWatch {
  if (!other) return one;
  return {
    get hasSubscribers() {
      return one.hasSubscribers || other.hasSubscribers;
    },
  };
}
