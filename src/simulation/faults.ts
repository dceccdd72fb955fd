import { MICRO } from '../units.js';
import { once } from './event-queue.js';
import type { Instance, World } from './instance.js';
import type { ParsedEvent } from './parse-event.js';
import type { Dice } from './random.js';
import type { Selection } from './scenario.js';

/** Puts the events of a scenario into the queue. */
export function scheduleEvents(world: World, instances: readonly Instance[], dice: Dice): void {
  const { queue, server, plan } = world;
  for (const event of plan.events) {
    if (event.kind === 'stale-failover') {
      let replica: ReturnType<typeof server.ceiling.snapshot> | undefined;
      queue.push(
        event.atMs - event.lagMs,
        once(() => {
          replica = server.ceiling.snapshot();
        }),
      );
      queue.push(
        event.atMs,
        once(() => replica && server.ceiling.failover(replica)),
      );
    } else {
      queue.push(
        event.atMs,
        once((now) => happen(event, world, instances, dice, now)),
      );
    }
  }
  if (plan.events.some(({ kind }) => kind === 'publish')) watchTerms(world);
}

function happen(
  event: Exclude<ParsedEvent, { kind: 'stale-failover' }>,
  { queue, server, network, feed }: World,
  instances: readonly Instance[],
  dice: Dice,
  now: number,
): void {
  switch (event.kind) {
    case 'crash':
      for (const instance of select(instances, event.instances, dice)) {
        instance.crash();
        const { restartAfterMs } = event;
        if (restartAfterMs === undefined) continue;
        queue.push(
          now + restartAfterMs,
          once(() => instance.start()),
        );
      }
      return;
    case 'stall':
      for (const instance of select(instances, event.instances, dice)) instance.stall(event.endsAtMs);
      return;
    case 'partition':
      for (const { storeLink, policyLink } of select(instances, event.instances, dice)) {
        if (event.from !== 'policies') storeLink.cutUntil = Math.max(storeLink.cutUntil, event.endsAtMs);
        if (event.from !== 'store') policyLink.cutUntil = Math.max(policyLink.cutUntil, event.endsAtMs);
      }
      return;
    case 'slow':
      network.slowUntil = event.endsAtMs;
      network.slowRoundTripMs = event.roundTripMs;
      return;
    case 'store-down':
      server.downUntil = Math.max(server.downUntil, event.endsAtMs);
      return;
    case 'store-loss':
      server.ceiling.lose();
      return;
    case 'evict':
      server.ceiling.inspect(event.policy, event.key)?.buckets.delete(`${event.policy}:${event.key}`);
      return;
    case 'clock-step':
      server.step(event.byMs);
      return;
    case 'publish':
      feed.publish(event.policy);
  }
}

function select(instances: readonly Instance[], selection: Selection, dice: Dice): readonly Instance[] {
  if (selection === 'all') return instances;
  if (typeof selection === 'object') return instances.filter(({ group }) => selection.groups.includes(group.name));
  const left = [...instances];
  const taken: Instance[] = [];
  while (taken.length < selection && left.length > 0) {
    taken.push(...left.splice(Math.floor(dice.roll() * left.length), 1));
  }
  return taken;
}

/** Tells the watch of each bucket when the store begins to count it under other terms. */
function watchTerms({ server, recorder, queue }: World): void {
  const versions = new Map<string, number>();
  server.executed = (call, reply) => {
    const name = `${call.policy}:${call.key}`;
    const bucket = server.ceiling.inspect(call.policy, call.key)?.buckets.get(name);
    const known = versions.get(name);
    if (!bucket || call.window || known === bucket.version) return;
    versions.set(name, bucket.version);
    if (known === undefined) return;
    // What this very call was granted came after the change.
    const granted = reply.status === 'granted' ? reply.granted : 0;
    const outstanding = (bucket.outstanding - granted) / MICRO;
    recorder.bucket(call.policy, call.key).change(bucket, outstanding, call.inheritance === 'reset', queue.now);
  };
}
