import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deposit, expire, leaseEnd, liveBalance, spend, type Wallet, withdraw } from '../../src/lease/wallet.js';

/** What a wallet should hold: lots, each with an end of its own, kept naively. */
interface Model {
  now: number;
  lots: number;
  endsAt: number;
  granted: number;
  spent: number;
  returned: number;
  dropped: number;
}

type Real = { wallet: Wallet; dropped: number };

class Deposit implements fc.Command<Model, Real> {
  constructor(
    readonly granted: number,
    readonly sentAgo: number,
    readonly leaseMs: number,
  ) {}
  check = () => true;
  run(model: Model, real: Real): void {
    const ends = leaseEnd(model.now - this.sentAgo, this.leaseMs);
    real.dropped += deposit(real.wallet, this.granted, ends, model.now);
    model.granted += this.granted;
    if (model.now >= model.endsAt) {
      model.dropped += model.lots;
      model.lots = 0;
    }
    if (model.now >= ends) {
      model.dropped += this.granted; // Its own lease was over before it came.
    } else {
      model.endsAt = model.lots > 0 ? Math.max(model.endsAt, ends) : ends;
      model.lots += this.granted;
    }
    holds(model, real);
  }
  toString = () => `deposit ${this.granted}, asked for ${this.sentAgo} ms ago for ${this.leaseMs} ms`;
}

class Spend implements fc.Command<Model, Real> {
  constructor(readonly cost: number) {}
  check = () => true;
  run(model: Model, real: Real): void {
    const there = model.now < model.endsAt && model.lots >= this.cost;
    expect(spend(real.wallet, this.cost, model.now)).toBe(there);
    if (there) {
      model.lots -= this.cost;
      model.spent += this.cost;
    }
    holds(model, real);
  }
  toString = () => `spend ${this.cost}`;
}

class GiveBack implements fc.Command<Model, Real> {
  constructor(readonly amount: number) {}
  check = () => true;
  run(model: Model, real: Real): void {
    const taken = model.now < model.endsAt ? Math.min(model.lots, this.amount) : 0;
    expect(withdraw(real.wallet, this.amount, model.now)).toBe(taken);
    model.lots -= taken;
    model.returned += taken;
    holds(model, real);
  }
  toString = () => `give back ${this.amount}`;
}

class Expire implements fc.Command<Model, Real> {
  check = () => true;
  run(model: Model, real: Real): void {
    real.dropped += expire(real.wallet, model.now);
    if (model.now >= model.endsAt) {
      model.dropped += model.lots;
      model.lots = 0;
    }
    holds(model, real);
  }
  toString = () => 'look for ended leases';
}

class Wait implements fc.Command<Model, Real> {
  constructor(readonly ms: number) {}
  check = () => true;
  run(model: Model, real: Real): void {
    model.now += this.ms;
    holds(model, real);
  }
  toString = () => `wait ${this.ms} ms`;
}

/** The wallet agrees with the model, and every token is somewhere (INV5). */
function holds(model: Model, { wallet, dropped }: Real): void {
  expect(liveBalance(wallet, model.now)).toBe(model.now < model.endsAt ? model.lots : 0);
  expect(dropped).toBe(model.dropped);
  expect(model.granted).toBe(model.spent + model.returned + model.dropped + wallet.balance);
}

const amount = fc.integer({ min: 0, max: 50 });
const commands = fc.commands(
  [
    fc
      .tuple(amount, fc.integer({ min: 0, max: 300 }), fc.integer({ min: 50, max: 400 }))
      .map(([granted, sentAgo, leaseMs]) => new Deposit(granted, sentAgo, leaseMs)),
    amount.map((cost) => new Spend(cost)),
    amount.map((given) => new GiveBack(given)),
    fc.constant(new Expire()),
    fc.integer({ min: 0, max: 200 }).map((ms) => new Wait(ms)),
  ],
  { maxCommands: 60 },
);

describe('a wallet', () => {
  it('holds what its model holds, and loses no token unaccounted for, under any sequence of dealings', () => {
    fc.assert(
      fc.property(commands, (commands) => {
        const wallet: Wallet = { balance: 0, endsAt: Number.NEGATIVE_INFINITY };
        const model = {
          now: 0,
          lots: 0,
          endsAt: Number.NEGATIVE_INFINITY,
          granted: 0,
          spent: 0,
          returned: 0,
          dropped: 0,
        };
        fc.modelRun(() => ({ model, real: { wallet, dropped: 0 } }), commands);
      }),
      { numRuns: 500 },
    );
  });

  it('ends a lease 1 % before its duration is over, counted from when it was asked for', () => {
    expect(leaseEnd(1_000, 2_000)).toBe(1_000 + 1_980);
  });
});
