import { count, duration, percent, type Screen } from '../terminal/screen.js';
import type { Verdict } from './verdict.js';
import { isBroken, type WorstWindow } from './window-bound.js';

const PHASES = {
  before: 'worst window under the first terms',
  across: 'worst window across the change',
  after: 'worst window under the new terms',
} as const;

/** The verdict as lines of text. */
export function showVerdict(verdict: Verdict, screen: Screen): void {
  const { p50, p99 } = verdict.decisionNs;
  const rows: [string, string][] = [
    ...verdict.windows.map((window): [string, string] => [
      verdict.windows.length === 1 ? 'worst window' : PHASES[window.phase],
      describeWindow(window),
    ]),
    [
      'utilisation',
      `${percent(verdict.utilisation)} of what the rate brings, from ${(verdict.measuredFromMs / 1_000).toFixed(1)} s on`,
    ],
    ['fairness', `${verdict.fairness.toFixed(4)} (Jain's index of shares relative to max-min fair ones)`],
    ['ceiling calls', `${verdict.ceilingCallsPer1000Decisions.toFixed(1)} per 1,000 decisions`],
    ['a decision', `p50 ${duration(p50)}, p99 ${duration(p99)}`],
    ['admitted', `${count(verdict.admitted)} in all`],
  ];
  screen.line();
  for (const [name, value] of rows) screen.line(`  ${name.padEnd(36)} ${value}`);
  screen.line();
  screen.line(
    verdict.ok
      ? screen.style(['bold', 'green'], 'The bound held: no window of any length was above it.')
      : screen.style(['bold', 'red'], 'THE BOUND WAS BROKEN: see the windows above.'),
  );
}

/** "1,432 of 1,500 allowed in 0.52 s" */
export function describeWindow(window: WorstWindow): string {
  const { admitted, allowed, widthMs } = window;
  const broken = isBroken(window) ? ', BROKEN' : '';
  return `${count(admitted)} of ${count(Math.floor(allowed))} allowed in ${(widthMs / 1_000).toFixed(3)} s${broken}`;
}
