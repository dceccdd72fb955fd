import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { InvalidPolicyError, parsePolicy } from '../index.js';
import {
  accessLineParser,
  jsonLineParser,
  type LogReading,
  Replay,
  type ReplayReport,
  readLog,
  requestReader,
} from '../replay/index.js';
import { UsageError } from '../terminal/flags.js';
import { count, Screen } from '../terminal/screen.js';
import { type Command, checkReport, EXIT, type Streams, showJson, writeReport } from './command.js';
import { InputFile } from './input-file.js';
import { REPLAY_USAGE, type ReplayCommandOptions, readReplayOptions } from './replay-options.js';
import { replayPage } from './replay-page.js';
import { showReplay } from './replay-summary.js';

/** Between two redrawings of the progress bar. */
const REDRAW_MS = 100;
const MEGA = 1_000_000;

export const replayCommand: Command = {
  summary: 'what a policy would have done to the traffic in a log',
  usage: REPLAY_USAGE,
  async run(args, streams) {
    const options = readReplayOptions(args);
    await checkReport(options.report);
    if (options.format) options.fields(options.format);
    const { policy, replay } = await newReplay(options, streams);
    const reading = await readThrough(options, replay, streams);
    const report = replay.report();
    if (report.requests === 0) throw nothingRead(options.log, reading);
    const outcome = { log: options.log, policy: policy.document, reading, report, reorderMs: options.reorderMs };
    if (options.report !== undefined) await writeReport(options.report, replayPage(outcome));
    if (options.json)
      showJson({ log: options.log, policy: policy.document, ...reading, ...inEpochMs(report) }, streams);
    else showReplay(outcome, new Screen(streams.stdout));
    return EXIT.ok;
  },
};

async function newReplay({ policy: file, instances, maxKeys }: ReplayCommandOptions, { stdin }: Streams) {
  const input = await InputFile.read(file, stdin);
  try {
    const policy = parsePolicy(input.value);
    return { policy, replay: new Replay(policy, { instances, maxKeys }) };
  } catch (error) {
    if (!(error instanceof InvalidPolicyError)) throw error;
    throw input.wrong(error.path, error.message);
  }
}

async function readThrough(options: ReplayCommandOptions, replay: Replay, streams: Streams): Promise<LogReading> {
  const { log, timeField, reorderMs } = options;
  const size = log === '-' ? undefined : (await stat(log).catch(unreadable(log))).size;
  const source = log === '-' ? streams.stdin : createReadStream(log, { highWaterMark: 256 * 1_024 });
  const screen = new Screen(streams.stderr);
  let drawnAt = Number.NEGATIVE_INFINITY;
  try {
    return await readLog(source, {
      reorder: reorderMs * 1_000,
      reader: (first) => {
        const format = options.format ?? (first.trimStart().startsWith('{') ? 'json' : 'access');
        const parser = format === 'json' ? jsonLineParser(timeField) : accessLineParser();
        return requestReader(parser, options.fields(format));
      },
      request: (request) => replay.decide(request),
      progress: (bytes) => {
        const now = performance.now();
        if (now - drawnAt < REDRAW_MS) return;
        drawnAt = now;
        const done = size === undefined ? '' : ` of ${count(size / MEGA)}`;
        screen.progress(size ? bytes / size : 0, `${count(bytes / MEGA)}${done} MB`);
      },
    });
  } catch (error) {
    throw error instanceof Error && 'code' in error && !(error instanceof UsageError) ? unreadable(log)(error) : error;
  } finally {
    screen.end();
  }
}

/** The error for a log that the system, or gzip, can't read. */
function unreadable(log: string): (error: Error & { code?: unknown }) => never {
  return ({ code, message }) => {
    const what = String(code).startsWith('Z_') ? 'a log that is whole' : 'a log that can be read';
    throw new UsageError(`Expected ${what}, got "${log}" (${String(code).startsWith('Z_') ? message : code}).`);
  };
}

function nothingRead(log: string, { samples }: LogReading): UsageError {
  const [first] = samples;
  const expected = 'Expected an access log in common or combined log format, or JSON lines';
  if (!first) return new UsageError(`${expected}, got "${log}", which is empty.`);
  return new UsageError(`${log}:${first.line}: ${expected}, got a line that is ${first.reason}, as are all others.`);
}

/** Moments as JavaScript has them; the policy is told as a whole. */
function inEpochMs({ policy: _, from, to, timeline, ...rest }: ReplayReport) {
  const ms = (micros: number | undefined) => micros && micros / 1_000;
  const { every, admitted, denied } = timeline;
  return { ...rest, from: ms(from), to: ms(to), timeline: { everyMs: ms(every), admitted, denied } };
}
