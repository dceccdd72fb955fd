import { clusterCeiling, clusterPolicySource } from '../cluster/index.js';
import { createLimiter, type Limiter, type Observer, silentObserver } from '../index.js';
import { hostNow, type RememberingTime } from './host-clock.js';
import type { FromInstance, FromPrimary, InstanceSettings } from './protocol.js';

/** Tells the primary. */
export function tell(message: FromInstance): void {
  process.send?.(message, undefined, undefined, () => {});
}

/** Follows the orders of the primary, and ends with it. */
export function onOrders(follow: (order: FromPrimary) => void): void {
  process.on('message', (message: FromPrimary) => {
    // The SDK's own messages come by here too.
    if (message?.demo !== undefined) follow(message);
  });
  process.on('disconnect', () => process.exit());
}

/** The limiter of an instance: over the servers it was given, and over the primary for the rest. */
export function instanceLimiter(
  { instance, policies, redis, nats, callDeadlineMs }: InstanceSettings,
  time: RememberingTime,
  observer: Observer,
): Promise<Limiter> {
  return createLimiter({
    policies,
    ...(redis === undefined ? { ceiling: clusterCeiling() } : { redis }),
    ...(nats === undefined ? { policySource: clusterPolicySource() } : { nats }),
    instanceId: `demo-${instance}`,
    group: 'headgate-demo',
    ...(callDeadlineMs !== undefined && { callDeadlineMs }),
    time,
    observer,
    onTrouble: ({ message }) => tell({ demo: 'trouble', message }),
  });
}

/** An observer that only tells when the store has met the terms of a newer policy. */
export function fenceObserver(): Observer {
  let version = 0;
  let told = 0;
  return {
    ...silentObserver,
    roundTrip(_start, send) {
      const sent = version;
      send();
      return ({ failed }) => {
        if (sent <= told || failed > 0) return;
        told = sent;
        tell({ demo: 'fenced', version: sent, at: hostNow() });
      };
    },
    // Told before the limiter acts on it: a call of this tick may already carry the new terms, never the next the old.
    policyChanged: (change) => {
      if (change.outcome === 'applied') version = change.version;
    },
  };
}
