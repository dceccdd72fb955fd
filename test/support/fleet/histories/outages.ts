import type { Instance } from '../instance.js';
import { type History, Stage } from '../stage.js';

/** Section 6: machines that sleep, and a store that nobody can reach. */
export const outageHistories: readonly History[] = [
  {
    rule: 'suspend',
    shows: 'what a machine held when it was suspended is dropped when that is noticed',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      suspended(stage, holder, 36_000_000);
      stage.drain(other);
      stage.send(holder); // Any traffic with the store is enough to notice.
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: 'suspend',
    shows: 'and a reply that waited out the suspension is not taken',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      const call = stage.send(holder, { need: 60 });
      call.execute();
      suspended(stage, holder, 36_000_000);
      stage.drain(other);
      call.deliver();
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: 'share',
    shows: 'the first to come back pays for the whole fleet, before anybody draws',
    async run(production) {
      const { stage, fleet } = await outage(production);
      comeBack(stage, fleet[0] as Instance);
      stage.drain(fleet[0] as Instance);
      // Bound of an outage: one cost for each instance on top.
      return Math.max(0, stage.over - fleet.length);
    },
  },
  {
    rule: 'share',
    shows: 'each moment is paid for once, however many come back',
    unit: 'tokens too few',
    async run(production) {
      const { stage, fleet } = await outage(production, 1, 900);
      for (const instance of fleet) comeBack(stage, instance);
      return Math.max(0, 100 - stage.fleet.now / 20 - 2 - stage.tokens);
    },
  },
  {
    rule: 'share',
    shows: 'and the bucket is not pushed below zero for it',
    unit: 'tokens below zero',
    async run(production) {
      const { stage, fleet } = await outage(production);
      comeBack(stage, fleet[0] as Instance);
      return Math.max(0, -stage.tokens);
    },
  },
  {
    rule: 'share',
    shows: 'starts empty, however often the store comes and goes',
    async run(production) {
      const stage = new Stage(production, { fleetSize: 4, policy: { outage: { mode: 'share', fleet: 4 } } });
      const holder = await stage.join();
      stage.publish({ burst: 100, rate: 1, per: 1_000_000 });
      holder.hears(stage.fleet.news);
      stage.draw(holder, 99);
      holder.spend();
      stage.drain(holder);
      let admitted = 0;
      for (let i = 0; i < 20; i++) {
        holder.wire.ready = false;
        stage.at(stage.fleet.now + 2_000);
        if (holder.attempt(1)) admitted += 1;
        if (holder.attempt(1)) admitted += 1;
        holder.wire.ready = true;
        stage.next(holder, { asking: true }).exchange();
        stage.fleet.answersAtOnce = true;
        stage.at(stage.fleet.now + 20);
        stage.fleet.answersAtOnce = false;
      }
      return Math.max(0, admitted - 1);
    },
  },
  {
    rule: 'share',
    shows: 'begins when the last lease ends: who is cut off for less than that admits nothing by itself',
    async run(production) {
      const stage = new Stage(production, { policy: { outage: { mode: 'share', fleet: 4 } } });
      const [alone, other] = [await stage.join(), await stage.join()];
      stage.draw(alone, 60);
      alone.spend();
      alone.wire.ready = false;
      // The other gets all that the ceiling brings meanwhile.
      for (let ms = 5; ms <= 900; ms += 5) {
        stage.at(ms);
        alone.attempt();
        stage.drain(other);
      }
      return stage.over;
    },
  },
  {
    rule: 'share',
    shows: 'an outage that began while a call was under way is still paid for',
    unit: 'debts forgotten',
    async run(production) {
      const stage = new Stage(production, { fleetSize: 1, policy: { outage: { mode: 'share', fleet: 1 } } });
      const holder = await stage.join();
      await Promise.resolve();
      stage.drain(holder);
      const call = stage.send(holder, { need: 1 });
      call.execute();
      holder.wire.ready = false;
      const account = holder.account;
      if (account) account.outageSince = 1; // As an attempt that the share mode answers leaves it.
      call.deliver();
      return account?.outageSince === 0 ? 1 : 0;
    },
  },
  {
    rule: 'outage',
    shows: 'whoever waits while the store is not connected does not keep the processor busy',
    unit: 'times it span',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      stage.drain(holder);
      holder.wire.ready = false;
      holder.act(() => void holder.api.acquire('k', { maxWaitMs: 5_000 }).catch(() => {}));
      try {
        stage.idleUntil(stage.fleet.now + 3_000);
        return 0;
      } catch {
        return 1; // The clock of these tests refuses to run tasks without a delay for ever.
      }
    },
  },
];

/** Four instances that share 1 token in 20 ms lose the store after a draw each, and admit what their shares allow. */
async function outage(
  production: Parameters<History['run']>[0],
  drawn = 24,
  lastsMs = 3_000,
): Promise<{ stage: Stage; fleet: Instance[] }> {
  const share = { outage: { mode: 'share', fleet: 4 } as const };
  const stage = new Stage(production, { rate: 1, perMs: 20, leaseMs: 500, policy: share });
  const fleet: Instance[] = [];
  for (let i = 0; i < 4; i++) fleet.push(await stage.join());
  for (const instance of fleet) {
    stage.draw(instance, drawn);
    instance.spend();
    stage.report(instance);
    instance.wire.ready = false;
  }
  for (let ms = 5; ms <= lastsMs; ms += 5) {
    stage.at(ms);
    for (const instance of fleet) instance.attempt();
  }
  stage.fleet.fresh.length = 0;
  return { stage, fleet };
}

/** The store is there again for `instance`: its next call says since when it was without. */
function comeBack(stage: Stage, instance: Instance): void {
  instance.wire.ready = true;
  instance.ask = { need: 0, head: 0, want: 0, demand: 0 };
  instance.pace = { next: 0, retry: 0 };
  stage.next(instance, { asking: true }).exchange();
}

function suspended(stage: Stage, instance: Parameters<Stage['report']>[0], ms: number): void {
  instance.stalledUntilUs = Number.POSITIVE_INFINITY;
  stage.idleUntil(stage.fleet.now + ms);
  instance.time.slept(ms);
  instance.stalledUntilUs = 0;
}
