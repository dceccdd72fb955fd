import { MICRO } from '../../../../src/units.js';
import { EVERYTHING, type History, Stage } from '../stage.js';

/** Rules 1, 2, 3, 8, 9, 10, 11 and 12: what the store does with honest calls that come twice, late or from strangers. */
export const ledgerHistories: readonly History[] = [
  {
    rule: '1',
    shows: 'tokens in a wallet keep their place in the burst: T is capped by B − O',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(100); // Time to refill all that is gone from the bucket, were it gone.
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '2',
    shows: 'a call that comes once more after a newer one changes nothing',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      const giveBack = stage.send(holder, { keep: 30 });
      giveBack.exchange();
      stage.draw(holder, 50);
      stage.at(5);
      giveBack.execute(); // 30 came back once; what was granted since stays outstanding.
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '2',
    shows: 'a call that runs twice is answered twice alike',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      const call = stage.send(holder, { need: 60 });
      const first = call.execute();
      call.execute(); // Were it granted anew, there would be less this time, and the store would go by that.
      call.deliver(first);
      stage.at(100);
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '2',
    shows: 'seq is one counter a limiter: a key that was forgotten does not begin again at 1',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 100, leaseMs: 5_000 });
      const holder = await stage.join();
      stage.drain(holder);
      stage.idleUntil(2_100); // Unused for a second or two: the key is forgotten here, not yet at the store.
      stage.drain(holder);
      return stage.over;
    },
  },
  {
    rule: '2',
    shows: 'one call is in flight for a bucket, however much is asked for',
    unit: 'calls',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      for (let i = 0; i < 10; i++) holder.attempt(2);
      holder.act(() => void holder.api.acquire('k', { maxWaitMs: 20 }).catch(() => {}));
      return stage.fleet.fresh.length - 1;
    },
  },
  {
    rule: '3',
    shows: 'a limiter restarted under its instanceId is somebody else to the store',
    async run(production) {
      const stage = new Stage(production);
      const before = await stage.join({ instanceId: 'web-7' });
      stage.draw(before, 50);
      before.spend();
      before.crash();
      const after = await stage.join({ instanceId: 'web-7' });
      stage.draw(after, 50); // Its first call too has seq 1.
      after.spend();
      stage.drain(await stage.join());
      return stage.over;
    },
  },
  {
    rule: '8',
    shows: 'refill comes first, with the old O, and lease ends after it',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 10 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 99);
      stage.at(985);
      holder.spend();
      holder.crash();
      stage.at(1_111); // The lease has ended: the time in which its tokens sat in a wallet is not paid for.
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '9',
    shows: 'the fence outlives the bucket: a stale instance does not bring the old burst back',
    async run(production) {
      const stage = new Stage(production, { burst: 1_000, rate: 1, perMs: 10 });
      const stale = await stage.join();
      stage.publish({ burst: 10, rate: 1, per: 10 });
      stage.report(await stage.join());
      stage.idleUntil(60_000); // The key has expired long ago.
      stage.drain(stale);
      return stage.over;
    },
  },
  {
    rule: '10',
    shows: 'a call answered from its record changes nothing of the bucket, terms and expiry included',
    async run(production) {
      const stage = new Stage(production);
      const holder = await stage.join();
      const first = stage.send(holder, { need: 99 });
      first.exchange();
      stage.at(9);
      holder.spend();
      stage.publish({ burst: 100, rate: 1, per: 100 });
      stage.at(10);
      stage.fleet.otherKeyHears(stage.fleet.news);
      first.execute(); // A duplicate: it may not switch the terms and leave the expiry of the old ones.
      stage.at(2_600);
      stage.drain(await stage.join());
      return stage.over;
    },
  },
  {
    rule: '11',
    shows: 'the key outlives every lease in it',
    async run(production) {
      const stage = new Stage(production, { leaseMs: 3_000 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 99);
      stage.at(1_250); // The bucket would be full again long ago, had the tokens been spent.
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '12',
    shows: 'one token a day accrues however often it is asked for',
    unit: 'micro-tokens too few',
    async run(production) {
      const stage = new Stage(production, { burst: 1, rate: 1, perMs: 86_400_000 });
      const holder = await stage.join();
      stage.drain(holder);
      for (let i = 1; i <= 500; i++) {
        stage.at(i * 86);
        stage.report(holder);
      }
      return Math.floor((500 * 86_000) / 86_400) - 1 - stage.tokens * MICRO;
    },
  },
  {
    rule: 'lease end',
    shows: 'a lease that ends is counted as spent, never credited',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 10 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(985);
      holder.spend();
      holder.crash();
      stage.at(1_111);
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: 'terms',
    shows: 'a tightened ceiling holds from the first call that carries it, whoever comes after',
    async run(production) {
      const stage = new Stage(production);
      const stale = await stage.join();
      stage.drain(stale);
      stage.publish({ burst: 10, rate: 1, per: 10 });
      stage.report(await stage.join());
      let admitted = 0;
      for (let ms = 100; ms < 1_000; ms += 100) {
        stage.at(ms);
        admitted += stage.drain(stale);
      }
      const soon = admitted - (10 + 900 / 10);
      stage.idleUntil(70_000); // Longer than terms are contested for.
      stage.report(stale);
      stage.drain(stale);
      stage.report(stale);
      stage.at(70_100);
      const later = stage.drain(stale) - 100 / 10;
      return Math.max(0, soon, later);
    },
  },
  {
    rule: 'terms',
    shows: 'and so does a loosened one',
    unit: 'tokens too few',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 100 });
      const holder = await stage.join();
      stage.drain(holder);
      stage.report(holder);
      stage.publish({ burst: 200, rate: 1, per: 1 });
      holder.hears(stage.fleet.news);
      stage.report(holder);
      stage.at(500);
      return Math.max(0, 200 - stage.tokens);
    },
  },
  {
    rule: 'terms',
    shows: 'an override that was taken back does not come back with an instance that has not heard',
    async run(production) {
      const override = { k: { ceiling: { burst: 1_000, rate: 1_000, per: 10 } } };
      const stage = new Stage(production, { burst: 10, rate: 1, perMs: 10, policy: { overrides: override } });
      const stale = await stage.join();
      stage.fleet.news = { ...stage.fleet.news, version: 2, overrides: {} };
      stage.drain(await stage.join());
      let admitted = 0;
      for (let ms = 100; ms < 200; ms += 10) {
        stage.at(ms);
        admitted += stage.drain(stale);
      }
      return Math.max(0, admitted - (10 + 200 / 10));
    },
  },
  {
    rule: 'terms',
    shows: 'a reset hands out one full burst, and is refused for the time it takes to earn one',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 10 });
      const holder = await stage.join();
      let admitted = 0;
      for (let version = 2; version < 6; version++) {
        admitted += stage.drain(holder);
        stage.report(holder);
        stage.publish({ burst: 100, rate: 1, per: 10 }, { inheritance: 'reset' });
        holder.hears(stage.fleet.news);
        stage.at(version * 10);
      }
      return Math.max(0, admitted + stage.drain(holder) - (100 + 100 + 5));
    },
  },
  {
    rule: 'terms',
    shows: 'a key that has missed changes is given what the last one hands out, and no more',
    async run(production) {
      let worst = 0;
      for (const inheritance of ['additive', 'proportional']) {
        const stage = new Stage(production, { burst: 15, rate: 1, perMs: 1_000 });
        const holder = await stage.join();
        let admitted = stage.drain(holder);
        stage.at(10_000); // Some tokens, for a fraction of them to be kept.
        stage.publish({ burst: 50, rate: 1, per: 1_000 });
        stage.fleet.otherKeyHears(stage.fleet.news);
        stage.publish({ burst: 60, rate: 1, per: 1_000 }, { inheritance });
        holder.hears(stage.fleet.news);
        admitted += stage.drain(holder);
        worst = Math.max(worst, admitted - (15 + 10 + 10));
      }
      return worst;
    },
  },
  {
    rule: 'terms',
    shows: 'of two terms given in code the stricter hold, while anybody stands for them',
    async run(production) {
      const stage = new Stage(production, { policy: { version: 0 } });
      const strict = { ...stage.fleet.news, ceiling: { burst: 10, rate: 1, per: 100 } };
      const [loose, careful] = [await stage.join(), await stage.join({ document: strict })];
      stage.fleet.answersAtOnce = true;
      let admitted = 0;
      for (let ms = 0; ms <= 100_000; ms += 5_000) {
        stage.at(ms);
        stage.report(careful);
        admitted += stage.drain(loose);
      }
      return Math.max(0, admitted - (10 + 1_000 + 1));
    },
  },
  {
    rule: 'terms',
    shows: 'and where nobody has for a minute, the looser ones take over',
    unit: 'tokens too few',
    async run(production) {
      const stage = new Stage(production, { policy: { version: 0 } });
      const strict = { ...stage.fleet.news, ceiling: { burst: 10, rate: 1, per: 100 } };
      const [loose, careful] = [await stage.join(), await stage.join({ document: strict })];
      stage.report(careful);
      stage.report(loose);
      stage.at(61_000);
      stage.report(loose);
      stage.at(62_000);
      return 100 - stage.draw(loose, EVERYTHING);
    },
  },
];
