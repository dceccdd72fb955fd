import { count, duration, percent, type Screen } from '../terminal/screen.js';
import type { DemoOptions } from './options.js';
import { type ReplayHistory, replayLog } from './replay.js';
import { EXPECTED_RATIO, type ReplayVerdict } from './replay-verdict.js';
import { describeWindow } from './summary.js';

/** Runs the replay that the command line asks for, shown on `screen`, and answers what happened. */
export async function runReplay(options: DemoOptions, screen: Screen): Promise<ReplayHistory> {
  let shownAt = 0;
  try {
    return await replayLog(options, {
      surveyed: (survey, limits, speed) => {
        const { client, global } = limits;
        const hours = (survey.to - survey.from) / 3_600_000;
        screen.line(
          `${screen.style('bold', `${options.replay}`)}: ${count(survey.requests)} requests in ` +
            `${hours.toFixed(1)} hours, ${count(speed)} times as fast, over ${options.instances} processes`,
        );
        screen.line(`  each client  ${count(client.perHour)} an hour, burst ${count(client.burst)}`);
        screen.line(`  all together ${count(global.perHour)} an hour, burst ${count(global.burst)}`);
        if (survey.unparsed > 0) {
          screen.line(
            screen.style('yellow', `  ${count(survey.unparsed)} lines can't be read and are left out, such as`),
          );
          for (const sample of survey.samples) screen.line(screen.style('yellow', `    ${JSON.stringify(sample)}`));
        }
        screen.line();
      },
      look: (done, { requests }) => {
        screen.progress(done / requests, `${count(done)} of ${count(requests)}`);
        // Without a bar, a line now and then.
        if (done - shownAt < requests / 10) return;
        shownAt = done;
        screen.line(`  ${count(done).padStart(9)} of ${count(requests)} requests`);
      },
      trouble: (instance, message) => screen.line(screen.style('yellow', `  instance ${instance}: ${message}`)),
    });
  } finally {
    screen.end();
  }
}

/** The verdict as lines of text. */
export function showReplay(history: ReplayHistory, verdict: ReplayVerdict, screen: Screen): void {
  const { clientWindow, globalWindow, mostDenied } = verdict;
  const wasted = verdict.deniedByGlobal;
  const rows: [string, string][] = [
    ['admitted', `${count(verdict.admitted)} of ${count(verdict.requests)} requests`],
    [
      'of what exact buckets admit',
      `${percent(verdict.ratio, 2)} (${count(verdict.exactAdmitted)}; ` +
        `${verdict.ratio >= EXPECTED_RATIO ? 'at least' : 'LESS THAN'} ${percent(EXPECTED_RATIO, 0)} is expected)`,
    ],
    ['denied', `${count(verdict.deniedByClient)} by their client's limit, ${count(wasted)} by the limit for all`],
    [
      'for what reason',
      Object.entries(verdict.reasons)
        .map(([reason, n]) => `${reason} ${count(n)}`)
        .join(', ') || 'none',
    ],
    ['charged in vain', `${count(wasted)} client tokens, of requests that the limit for all denied`],
    ['worst window of a client', clientWindow ? `${describeWindow(clientWindow)} (${clientWindow.client})` : 'none'],
    ['worst window of all together', globalWindow ? describeWindow(globalWindow) : 'none'],
    [
      'ceiling calls',
      `${((history.leaseCalls / Math.max(1, verdict.requests)) * 1_000).toFixed(0)} per 1,000 requests, ` +
        `${count(history.leaseFailures)} failed; ${count(history.askedAgain)} times asked again`,
    ],
    ['a request', `p50 ${duration(history.latencyNs.p50)}, p99 ${duration(history.latencyNs.p99)} in both limiters`],
  ];
  screen.line();
  for (const [name, value] of rows) screen.line(`  ${name.padEnd(30)} ${value}`);
  if (mostDenied.length > 0) {
    screen.line();
    screen.line('  denied most');
    for (const { client, denied, requests } of mostDenied) {
      screen.line(`    ${client.padEnd(28)} ${count(denied)} of ${count(requests)}`);
    }
  }
  screen.line();
  screen.line(
    verdict.ok
      ? screen.style(
          ['bold', 'green'],
          `The bounds held, for all ${count(verdict.clients)} clients and for all together.`,
        )
      : screen.style(['bold', 'red'], `THE BOUND WAS BROKEN: ${verdict.brokenClients.join(', ') || 'all together'}.`),
  );
}
