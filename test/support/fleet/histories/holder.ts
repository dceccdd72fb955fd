import type { Account } from '../../../../src/lease/account.js';
import { MICRO } from '../../../../src/units.js';
import { type History, Stage } from '../stage.js';

/** Rules 4 to 7: what a holder may do with replies, wallets and returns, and what the store may believe of it. */
export const holderHistories: readonly History[] = [
  {
    rule: '4',
    shows: 'a key that was forgotten and is touched again takes no spent grant back',
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
    rule: '4',
    shows: 'a reply to a call that was given up is ignored for ever',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.report(holder);
      const call = stage.send(holder, { need: 60 });
      call.execute();
      stage.next(holder).exchange(); // Given up at 40; the next call takes the grant back.
      stage.drain(other);
      call.deliver();
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '4',
    shows: 'a lost call takes back no grant but its own',
    async run(production) {
      const stage = new Stage(production, { rate: 1, perMs: 10 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend();
      stage.send(holder); // Lost on its way to the store: the last grant there is one that was taken and spent.
      stage.next(holder).exchange();
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '4',
    shows: 'what a lost call had returned never goes back into the wallet',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.send(holder, { keep: 0 }).execute();
      stage.at(45);
      stage.drain(other);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '4',
    shows: 'no more is taken back than is outstanding: not once the lease has ended',
    async run(production) {
      const stage = new Stage(production, { rate: 1_000, leaseMs: 200, deadlineMs: 100 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.report(holder);
      stage.send(holder, { need: 60 }).execute();
      const retry = stage.next(holder); // The reply is lost; so is this call, for the moment.
      stage.at(303);
      stage.report(other); // The lease of the 60 ends: refill may now make up for them.
      stage.at(320);
      stage.drain(other);
      stage.report(other);
      retry.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '5',
    shows: 'the lease is looked at when a token is spent: a stalled process wakes with dead tokens',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.stall(holder, 1_200);
      stage.at(1_111);
      stage.report(other);
      stage.at(1_200 - 0.001);
      stage.drain(other);
      holder.attempt(60);
      return stage.over;
    },
  },
  {
    rule: '5',
    shows: 'the lease is counted from before the call was sent, however late its reply is read',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      const call = stage.send(holder, { need: 60 });
      call.execute();
      stage.stall(holder, 2_000); // The reply lies in the socket meanwhile.
      stage.at(1_111);
      stage.report(other);
      stage.at(2_000 - 0.001);
      stage.drain(other);
      call.deliver();
      stage.at(2_000);
      holder.attempt(60);
      return stage.over;
    },
  },
  {
    rule: '5',
    shows: 'a clock that runs 1 % slow still ends the lease first',
    async run(production) {
      const stage = new Stage(production, { leaseMs: 20_000 });
      const [holder, other] = [await stage.join({ drift: -0.0099 }), await stage.join()];
      stage.draw(holder, 60);
      stage.at(20_001);
      stage.report(other);
      stage.at(20_150 - 0.001);
      stage.drain(other);
      holder.attempt(60);
      return stage.over;
    },
  },
  {
    rule: '5',
    shows: 'the store ends a lease later than its holder, by as much as its clock may be off',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.step(-100); // Too little to count: no time is paid for twice.
      stage.draw(holder, 60);
      stage.step(100);
      stage.stall(holder, 985);
      stage.at(915);
      stage.report(other);
      stage.at(985 - 0.001);
      stage.drain(other);
      holder.attempt(60);
      return stage.over;
    },
  },
  {
    rule: '6',
    shows: 'a deposit drops tokens whose own lease ended before the reply came',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(985);
      const renewal = stage.send(holder);
      stage.stall(holder, 1_180);
      stage.at(1_111);
      stage.report(other);
      stage.at(1_180 - 0.001);
      stage.drain(other);
      renewal.exchange();
      stage.at(1_180);
      holder.spend();
      return stage.over;
    },
  },
  {
    rule: '6',
    shows: 'and what was sent under a lease that the store has ended since is neither held nor given back',
    async run(production) {
      const stage = new Stage(production, { rate: 1_000 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(900);
      const report = stage.send(holder); // Says that 60 are unspent, and is late: given up at 940.
      const giveBack = stage.next(holder, { keep: 0 });
      holder.crash();
      stage.at(1_111);
      stage.report(other); // The lease ends, its tokens count as spent.
      stage.at(1_140);
      stage.drain(other);
      stage.report(other);
      report.execute();
      giveBack.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '7',
    shows: 'a late duplicate does not make up a holder that a late return then draws on',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend(20);
      const duplicate = stage.send(holder);
      duplicate.exchange();
      stage.at(985);
      const giveBack = stage.send(holder, { keep: 0 });
      holder.crash();
      forgetRecord(stage, other);
      duplicate.execute();
      giveBack.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '7',
    shows: 'nor one that looks as if it came from the future, since the clock has stepped back',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend(20);
      const duplicate = stage.send(holder);
      duplicate.exchange();
      stage.at(985);
      const giveBack = stage.send(holder, { keep: 0 });
      holder.crash();
      forgetRecord(stage, other);
      stage.step(-3_000);
      duplicate.execute();
      giveBack.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '7',
    shows: 'making a holder ignores what it returns',
    async run(production) {
      const stage = new Stage(production);
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(985);
      const giveBack = stage.send(holder, { keep: 0 });
      stage.oracle.forgets(); // Nobody holds anything that the store would not know of: no slack.
      stage.fleet.store.lose();
      stage.report(other);
      stage.at(1_150);
      stage.drain(other);
      stage.report(other);
      giveBack.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '7',
    shows: 'nor what it takes back',
    async run(production) {
      const stage = new Stage(production, { rate: 1_000 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      holder.spend();
      stage.report(holder);
      (holder.account as Account).takeBack(60 * MICRO, 0, holder.time.now());
      const refund = stage.send(holder);
      refund.execute();
      holder.crash();
      stage.oracle.forgets(); // Nobody holds anything that the store would not know of: no slack.
      stage.fleet.store.lose();
      stage.report(other);
      stage.at(200); // Full again by refill.
      stage.drain(other);
      stage.report(other);
      refund.execute();
      stage.drain(other);
      return stage.over;
    },
  },
  {
    rule: '7',
    shows: 'a record outlives its lease by as long as a call is believed',
    async run(production) {
      const stage = new Stage(production, { rate: 1_000 });
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.draw(holder, 60);
      stage.at(900);
      const report = stage.send(holder);
      const giveBack = stage.next(holder, { keep: 0 });
      holder.crash();
      stage.at(1_115);
      stage.report(other);
      stage.at(1_120);
      stage.report(other);
      stage.at(1_140);
      stage.drain(other);
      stage.report(other);
      report.execute();
      giveBack.execute();
      stage.drain(other);
      return stage.over;
    },
  },
];

/** Time passes until nothing is left of the first holder's record, and the bucket has been drained. */
function forgetRecord(stage: Stage, other: Parameters<Stage['report']>[0]): void {
  stage.at(1_115);
  stage.report(other);
  stage.at(1_500);
  stage.report(other);
  stage.drain(other);
  stage.report(other);
}
