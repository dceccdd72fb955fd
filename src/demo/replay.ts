import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveCluster } from '../cluster/index.js';
import type { Milliseconds, PolicyDocument } from '../index.js';
import { UsageError } from '../terminal/flags.js';
import { MemoryCeiling } from '../testing.js';
import { type LogSurvey, parseLogLine, readLogLines, surveyLog } from './access-log.js';
import { Fleet } from './fleet.js';
import { hostNow } from './host-clock.js';
import { Latency } from './latency.js';
import type { DemoOptions } from './options.js';
import type { DueRequest, InstanceReport, ReplaySettings } from './protocol.js';
import type { ReplayedRequest } from './replay-verdict.js';
import type { CeilingTerms } from './window-bound.js';

const CLIENT = 'client';
const GLOBAL = 'global';
const GLOBAL_KEY = 'everyone';
const HOUR_MS: Milliseconds = 3_600_000;
/** How long the replay of any log takes, unless told otherwise. */
const DEFAULT_DURATION_MS: Milliseconds = 24_000;
/** Requests are sent to their instances this long before they are due. */
const AHEAD_MS: Milliseconds = 300;
/** Instances are told to begin this much later, so that the first requests are there in time. */
const LEAD_MS: Milliseconds = 500;
/**
 * How many times faster the limiters' clock runs than the host's. Lease times can't shrink as much as the log's time
 * does (an hour of it passes in an eighth of a second), since they must outlast a round trip between processes that
 * compete for a few cores; so they shrink as far as that allows, and the rest shows in the figures.
 */
const CLOCK_SPEED = 2;
/** In the limiters' time. */
const LEASE_MS: Milliseconds = 500;

/** Limits in the log's own time: tokens an hour. */
export interface ReplayLimits {
  readonly client: { readonly perHour: number; readonly burst: number };
  readonly global: { readonly perHour: number; readonly burst: number };
}

export interface ReplayHistory {
  readonly survey: LogSurvey;
  readonly speed: number;
  readonly limits: ReplayLimits;
  /** The same limits on the host's clock. */
  readonly clientTerms: CeilingTerms;
  readonly globalTerms: CeilingTerms;
  readonly requests: readonly ReplayedRequest[];
  readonly leaseCalls: number;
  readonly leaseFailures: number;
  readonly askedAgain: number;
  readonly latencyNs: { readonly p50: number; readonly p99: number };
}

/** What is told while a replay runs. */
export interface ReplayListener {
  surveyed?(survey: LogSurvey, limits: ReplayLimits, speed: number): void;
  look?(done: number, survey: LogSurvey): void;
  trouble?(instance: number, message: string): void;
}

/** Replays a log over a fleet, each request at its time, and answers what became of all of them. */
export async function replayLog(options: DemoOptions, listener: ReplayListener = {}): Promise<ReplayHistory> {
  const file = options.replay as string;
  const survey = await surveyLog(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`Expected --replay to be a file that can be read, got "${file}" (${error.code}).`);
  });
  if (survey.requests === 0) {
    throw new UsageError(`Expected --replay to be an access log in combined format, no line of "${file}" is.`);
  }
  const spanMs = Math.max(1_000, survey.to - survey.from);
  const speed = options.speed ?? Math.max(1, spanMs / DEFAULT_DURATION_MS);
  const limits = limitsFor(options, survey, spanMs);
  const client = compressed(CLIENT, limits.client, speed);
  const global = compressed(GLOBAL, limits.global, speed);
  listener.surveyed?.(survey, limits, speed);

  const ceiling = new MemoryCeiling({ clock: () => Math.floor(hostNow() * CLOCK_SPEED * 1_000), newStore: 'full' });
  const server = serveCluster({ policies: [client.document, global.document], ceiling });
  const requests: ReplayedRequest[] = [];
  const fleet = new Fleet(
    Array.from({ length: options.instances }, (_, instance) => settingsOf(instance)),
    {
      trouble: (instance, message) => listener.trouble?.(instance, message),
      replayed: (_, rows) => {
        for (const [client, arrivedAt, clientAt, globalAt, reason] of rows) {
          requests.push({
            client,
            arrivedAt,
            clientAt: clientAt ?? undefined,
            globalAt: globalAt ?? undefined,
            reason,
          });
        }
        listener.look?.(requests.length, survey);
      },
    },
  );
  let reports: (InstanceReport | undefined)[];
  try {
    await fleet.ready();
    await sendRequests(fleet, file, survey, speed);
    reports = await fleet.stop();
  } finally {
    fleet.kill();
    await server.close();
  }
  const latency = new Latency();
  for (const report of reports) latency.add(report?.latency ?? []);
  const sum = (name: 'leaseCalls' | 'leaseFailures' | 'askedAgain'): number =>
    reports.reduce((total, report) => total + (report?.[name] ?? 0), 0);
  return {
    survey,
    speed,
    limits,
    clientTerms: client.terms,
    globalTerms: global.terms,
    requests,
    leaseCalls: sum('leaseCalls'),
    leaseFailures: sum('leaseFailures'),
    askedAgain: sum('askedAgain'),
    latencyNs: { p50: latency.percentile(0.5), p99: latency.percentile(0.99) },
  };
}

/** Deals the log's requests out in turn, as a balancer does, a little ahead of their times. */
async function sendRequests(fleet: Fleet, file: string, { from }: LogSurvey, speed: number): Promise<void> {
  const startAt = hostNow() + LEAD_MS;
  const groups = Array.from({ length: fleet.size }, (): DueRequest[] => []);
  let turn = 0;
  let sentUntil = startAt;
  const send = (): void => {
    for (const [instance, group] of groups.entries()) {
      if (group.length > 0) fleet.send(instance, { demo: 'requests', requests: group.splice(0) });
    }
  };
  for await (const line of readLogLines(file)) {
    const request = parseLogLine(line);
    if (!request) continue;
    // Servers write a line when its request ends, so times may step back a little: those are due at once.
    const at = startAt + (request.at - from) / speed;
    if (at > sentUntil) {
      send();
      sentUntil = at;
      const early = at - AHEAD_MS - hostNow();
      if (early > 0) await sleep(early);
    }
    groups[turn]?.push([at, request.client]);
    turn = (turn + 1) % fleet.size;
  }
  send();
  await sleep(Math.max(0, sentUntil - hostNow()) + 50);
}

/** Unless told otherwise: less for all than they ask for on the whole, and a small part of it for each. */
function limitsFor(options: DemoOptions, survey: LogSurvey, spanMs: Milliseconds): ReplayLimits {
  const mean = (survey.requests / spanMs) * HOUR_MS;
  const perHour = options.rate ?? Math.max(1, Math.round(mean * 0.9));
  const burst = options.burst ?? 4 * perHour;
  return {
    global: { perHour, burst },
    client: { perHour: Math.max(1, Math.round(perHour * 0.03)), burst: Math.max(1, Math.round(burst * 0.1)) },
  };
}

/** A limit in the log's time as a policy in the limiters' time, and as the very same terms on the host's clock. */
function compressed(
  name: string,
  { perHour, burst }: ReplayLimits['client'],
  speed: number,
): { document: PolicyDocument; terms: CeilingTerms } {
  // Whole microseconds, as policies have them: the exact buckets run on what that comes to, not on what was meant.
  const perMs = Math.max(0.001, Math.round((HOUR_MS / speed) * CLOCK_SPEED * 1_000) / 1_000);
  return {
    document: { name, ceiling: { rate: perHour, burst, per: perMs }, lease: { durationMs: LEASE_MS } },
    terms: { rate: (perHour / (perMs / CLOCK_SPEED)) * 1_000, burst },
  };
}

function settingsOf(instance: number): ReplaySettings {
  return {
    task: 'replay',
    instance,
    directory: tmpdir(),
    policies: [],
    redis: undefined,
    nats: undefined,
    // The longest there is: on the host's clock it is that much shorter.
    callDeadlineMs: 120,
    clientPolicy: CLIENT,
    globalPolicy: GLOBAL,
    globalKey: GLOBAL_KEY,
    speed: CLOCK_SPEED,
  };
}
