import { MICRO, type Tokens } from '../../../../src/units.js';
import { EVERYTHING, type History, Stage } from '../stage.js';

/** 100 tokens in each window of `window` ms; true time 0 is the start of one. */
function under(algorithm: 'fixed-window' | 'sliding-window-log' | 'sliding-window-counter', window: number) {
  return { policy: { ceiling: { algorithm, limit: 100, window } } };
}

function admitted(stage: Stage): Tokens {
  return stage.fleet.total / MICRO;
}

/** The laws of windows: what is spent in one, and for how long it counts. */
export const windowHistories: readonly History[] = [
  {
    rule: 'windows',
    shows: 'what a fixed window has granted is spent in it: no lease outlives its window',
    async run(production) {
      const stage = new Stage(production, under('fixed-window', 1_000));
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.report(holder);
      stage.at(500);
      stage.send(holder, { want: EVERYTHING }).exchange();
      stage.at(1_001);
      stage.drain(other);
      holder.spend();
      return admitted(stage) - 100;
    },
  },
  {
    rule: 'windows',
    shows: 'a call that runs again in the next window is granted no longer a lease than the first time',
    async run(production) {
      const stage = new Stage(production, under('fixed-window', 1_000));
      const [holder, other] = [await stage.join(), await stage.join()];
      stage.report(holder);
      stage.at(970);
      const call = stage.send(holder, { need: 60 });
      call.execute();
      stage.at(1_001);
      stage.drain(other);
      call.exchange();
      holder.spend();
      return admitted(stage) - 100;
    },
  },
  {
    rule: 'windows',
    shows: 'what holders report as spent comes back to a log when it is as old as the window',
    async run(production) {
      const stage = new Stage(production, under('sliding-window-log', 2_000));
      const [holder, other] = [await stage.join(), await stage.join()];
      await grown(stage, 2_000);
      stage.drain(holder);
      stage.at(2_100);
      stage.report(holder);
      stage.at(3_900);
      stage.drain(other);
      return admitted(stage) - 100;
    },
  },
  {
    rule: 'windows',
    shows: 'and so does what the end of a lease counts as spent',
    async run(production) {
      const stage = new Stage(production, under('sliding-window-log', 3_000));
      const [holder, other] = [await stage.join(), await stage.join()];
      await grown(stage, 3_000);
      stage.drain(holder);
      holder.crash();
      stage.at(5_900);
      stage.drain(other);
      return admitted(stage) - 100;
    },
  },
  {
    rule: 'windows',
    shows: 'of what two counts had in the window before, the part counts that a window of now still covers',
    async run(production) {
      const stage = new Stage(production, under('sliding-window-counter', 1_000));
      const [holder, other] = [await stage.join(), await stage.join()];
      await grown(stage, 2_000);
      stage.at(2_900);
      stage.drain(holder);
      stage.report(holder);
      stage.at(3_100);
      stage.drain(other);
      return admitted(stage) - 110;
    },
  },
];

/** Lets so much time pass that nothing can have been spent before the store's data was born. */
async function grown(stage: Stage, ms: number): Promise<void> {
  stage.report(stage.fleet.instances[0] as Parameters<Stage['report']>[0]);
  stage.at(ms);
}
