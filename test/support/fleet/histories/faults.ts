import { MICRO } from '../../../../src/units.js';
import { BUCKET, OTHER_KEY } from '../bucket-view.js';
import type { Instance } from '../instance.js';
import { EVERYTHING, type History, Stage } from '../stage.js';

/** Keeps a key in memory however little is asked of it: its local bucket is never full again. */
const KEPT = { policy: { local: { rate: 1, burst: 100_000, per: '1d' as const } } };

/** A policy that asks for the strict rule after a loss of the store's data. */
const STRICT = { policy: { storeLoss: 'strict' as const } };

/** Makes `holder` hold ready whatever it is given. */
async function holdReady(stage: Stage, holder: Instance): Promise<void> {
  stage.report(holder);
  stage.send(holder, { want: EVERYTHING }).exchange();
}

/** Section 6, and the store's clock: what happens when data, keys or moments are lost. */
export const faultHistories: readonly History[] = [
  {
    rule: 'clock',
    shows: 'a clock that steps back and forth pays for no moment twice',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      for (let i = 0; i < 40; i++) {
        stage.drain(holder);
        stage.step(i % 2 === 0 ? -90 : 90);
      }
      return stage.over;
    },
  },
  {
    rule: 'clock',
    shows: 'an hour back freezes nothing for longer than a lease and its grace',
    unit: 'ms too long',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 99);
      holder.crash();
      stage.step(-3_600_000);
      for (let ms = 1; ms < 20_000; ms += 50) {
        stage.at(ms);
        if (stage.drain(other) > 1) return Math.max(0, ms - (100 + 1_000 + 110 + 50));
      }
      return EVERYTHING;
    },
  },
  {
    rule: 'era',
    shows: 'a store that has lost its data begins empty, and is told of what wallets hold',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      stage.drain(holder);
      stage.fleet.store.lose();
      stage.at(1);
      stage.drain(holder);
      return stage.over;
    },
  },
  {
    rule: 'era',
    shows: 'holders register again, so that what they hold keeps its place in the burst',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.fleet.store.lose();
      stage.report(other);
      stage.at(10);
      stage.report(holder);
      stage.at(160);
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: 'era',
    shows: 'and its other wallets of that partition at once, when one of them hears of the new era',
    unit: 'tokens not registered',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      stage.draw(holder, 60);
      holder.act(() => holder.api.tryAcquire(OTHER_KEY));
      stage.taken(holder).exchange();
      stage.fleet.store.lose();
      holder.act(() => holder.api.tryAcquire(OTHER_KEY));
      stage.taken(holder).exchange();
      for (const message of stage.fleet.fresh.splice(0)) message.exchange();
      return 60 - stage.outstanding;
    },
  },
  {
    rule: 'era',
    shows: 'what was taken before the loss is not charged a second time: the bucket begins at zero, not below',
    unit: 'tokens below zero',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      stage.drain(holder);
      stage.at(1);
      stage.fleet.store.lose();
      stage.report(holder);
      return Math.max(0, -stage.tokens);
    },
  },
  {
    rule: 'strict',
    shows: 'what wallets hold that the store has lost is covered by a part of the burst kept for it',
    async run(production) {
      const stage = new Stage(production, STRICT);
      const [holder, other] = [await stage.join(), await stage.join()];
      await holdReady(stage, holder);
      stage.fleet.store.lose();
      stage.report(other);
      stage.at(200);
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: 'strict',
    shows: 'and never filled up with more than that part',
    unit: 'tokens above it',
    async run(production) {
      const stage = new Stage(production, STRICT);
      const holder = await stage.join();
      await holdReady(stage, holder);
      return holder.live / MICRO - 40;
    },
  },
  {
    rule: 'strict',
    shows: 'what was kept low for a lease fills up from its end on, also where nobody came meanwhile',
    async run(production) {
      const stage = new Stage(production, { ...STRICT, perMs: 1_500 });
      const [holder, other] = [await stage.join(), await stage.join()];
      await holdReady(stage, holder);
      const late = await stage.join();
      stage.fleet.store.lose();
      stage.fleet.otherKeyHears(stage.fleet.news); // The new data is born.
      stage.report(late);
      stage.at(985);
      holder.spend();
      stage.at(1_111);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'strict',
    shows: 'who has not heard of it is held to it by the first that has',
    async run(production) {
      const stage = new Stage(production, STRICT);
      const quick = { ...stage.fleet.news, storeLoss: 'quick' as const };
      const [holder, other] = [await stage.join(), await stage.join({ document: quick })];
      await holdReady(stage, holder);
      const third = await stage.join();
      stage.fleet.store.lose();
      stage.report(other);
      stage.report(third);
      stage.at(200);
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: 'absence',
    shows: 'a raised burst is earned, not found, by a key that comes for the first time after it',
    async run(production) {
      const stage = new Stage(production, { burst: 10, rate: 1, perMs: 100 });
      const holder = await stage.join();
      stage.drain(holder);
      stage.idleUntil(10_000);
      stage.publish({ burst: 1_000, rate: 1, per: 100 });
      const late = await stage.join();
      stage.drain(late);
      return stage.over;
    },
  },
  {
    rule: 'suspect',
    shows: 'a promoted replica has nothing left that its data still shows',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.report(holder);
      const behind = stage.fleet.store.snapshot();
      stage.drain(holder);
      stage.at(1);
      stage.fleet.store.failover(behind);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'suspect',
    shows: 'nor does it pay for the time since its data was current',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.drain(holder);
      stage.report(holder);
      const behind = stage.fleet.store.snapshot();
      stage.at(100);
      stage.drain(holder);
      stage.at(101);
      stage.fleet.store.failover(behind);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'suspect',
    shows: 'nor has it keys that are full because nobody had touched them',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.publish({ burst: 100, rate: 100, per: 100 });
      stage.fleet.otherKeyHears(stage.fleet.news); // An occasion on which the level of untouched buckets is written.
      const behind = stage.fleet.store.snapshot();
      stage.drain(holder);
      stage.report(holder);
      stage.at(60);
      stage.drain(holder);
      stage.at(61);
      stage.fleet.store.failover(behind);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'witness',
    shows: 'a key that was deleted is charged what its holder has taken from it',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend();
      stage.at(1);
      stage.evict();
      stage.report(holder);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'witness',
    shows: 'a key that has expired is not: it was full',
    unit: 'tokens too few',
    async run(production) {
      const stage = new Stage(production, KEPT);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend();
      const expiresAt = (stage.fleet.partition?.buckets.get(BUCKET)?.expiresAt ?? 0) - stage.fleet.time.storeNow();
      stage.idleUntil(expiresAt / 1_000 - 20);
      const late = stage.send(holder, { need: 1 });
      stage.at(expiresAt / 1_000 + 1);
      stage.report(other); // The key is made anew, full.
      late.execute();
      return Math.max(0, 98.999 - stage.tokens);
    },
  },
  {
    rule: 'witness',
    shows: 'and never pushes the bucket below minus one burst',
    unit: 'tokens below',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      for (let ms = 0; ms <= 600; ms += 100) {
        stage.at(ms);
        stage.drain(holder);
      }
      stage.evict();
      stage.report(holder);
      return Math.max(0, -100 - stage.tokens);
    },
  },
];
