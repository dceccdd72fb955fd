import { count, type Screen } from '../terminal/screen.js';
import type { DemoOptions } from './options.js';
import { OVERLOAD, Scenario, type ScenarioEvent } from './scenario.js';
import type { FleetHistory } from './verdict.js';
import type { CeilingTerms } from './window-bound.js';

/** What the policy is tightened to half way, of rate and burst. */
const TIGHTENED = 0.5;
/** When an instance is killed, of the whole. */
const KILLED_AT = 0.7;

/** Runs the demo as the command line asks for, shown on `screen`, and answers what happened. */
export async function runDemo(options: DemoOptions, screen: Screen): Promise<FleetHistory> {
  const terms = demoTerms(options);
  const tightened = { rate: terms.rate * TIGHTENED, burst: Math.max(1, terms.burst * TIGHTENED) };
  const durationMs = options.seconds * 1_000;
  const victim = options.instances - 1;
  const events: ScenarioEvent[] = [
    {
      atMs: durationMs / 2,
      label: `policy published: ${count(tightened.rate)} a second, burst ${count(tightened.burst)}`,
      run: (scenario) => scenario.publish(tightened),
    },
  ];
  if (options.instances > 1) {
    events.push({
      atMs: durationMs * KILLED_AT,
      label: `instance ${victim} killed (SIGKILL), with what it held`,
      run: (scenario) => scenario.killInstance(victim),
    });
  }

  screen.line(
    `${screen.style('bold', `${options.instances} processes, one ceiling`)} of ${count(terms.rate)} a second and ` +
      `burst ${count(terms.burst)}; ${OVERLOAD} times as much is asked for, for ${options.seconds} s`,
  );
  screen.line(
    screen.style(
      'dim',
      `ceiling: ${options.redis ?? "the primary's memory"} · policies: ${options.nats ?? "the primary's memory"}`,
    ),
  );
  screen.line();
  const lines = new SecondLines(screen, terms, options.seconds);
  try {
    return await Scenario.run(
      { instances: options.instances, durationMs, terms, redis: options.redis, nats: options.nats, events },
      {
        look: (elapsedMs, scenario) => lines.look(elapsedMs, scenario),
        event: ({ label }) => {
          if (label.startsWith('policy')) lines.rate = tightened.rate;
          screen.line(screen.style('yellow', `       ${label}`));
        },
        trouble: (instance, message) => screen.line(screen.style('yellow', `       instance ${instance}: ${message}`)),
      },
    );
  } finally {
    screen.end();
  }
}

export function demoTerms({ rate = 1_000, burst }: DemoOptions): CeilingTerms {
  return { rate, burst: burst ?? rate };
}

/** One line for each second, and the bar. */
class SecondLines {
  /** Tokens a second that are in force, as far as has been published. */
  rate: number;
  readonly #screen: Screen;
  readonly #seconds: number;
  #second = 0;
  #admitted = 0;
  #offered = 0;

  constructor(screen: Screen, terms: CeilingTerms, seconds: number) {
    this.#screen = screen;
    this.#seconds = seconds;
    this.rate = terms.rate;
  }

  look(elapsedMs: number, scenario: Scenario): void {
    const second = Math.floor(elapsedMs / 1_000);
    if (second > this.#second) {
      this.#line(second, scenario);
      this.#second = second;
    }
    const left = Math.max(0, Math.ceil(this.#seconds - elapsedMs / 1_000));
    this.#screen.progress(elapsedMs / 1_000 / this.#seconds, `${left} s left`);
  }

  #line(second: number, scenario: Scenario): void {
    const { fleet } = scenario;
    let admitted = 0;
    let offered = 0;
    for (let instance = 0; instance < fleet.size; instance++) {
      admitted += scenario.admitted(instance);
      offered += fleet.offered(instance);
    }
    const seconds = second - this.#second;
    const perSecond = (admitted - this.#admitted) / seconds;
    this.#screen.line(
      `${String(second).padStart(4)} s  admitted ${count(perSecond).padStart(6)}/s  ` +
        `ceiling ${count(this.rate).padStart(6)}/s  offered ${count((offered - this.#offered) / seconds).padStart(6)}/s  ` +
        `instances ${fleet.alive}`,
    );
    this.#admitted = admitted;
    this.#offered = offered;
  }
}
