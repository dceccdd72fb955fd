import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import type { EpochMilliseconds } from '../index.js';

/** One request of an access log. */
export interface LoggedRequest {
  readonly client: string;
  readonly at: EpochMilliseconds;
}

// client, identity, user, [time], "request line": the rest of the combined format does not matter here.
const LINE = /^(\S{1,512}) \S+ .*?\[(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2}) ([+-])(\d{2})(\d{2})\] "/;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The request a line in combined (or common) log format tells of; `undefined` where it is none. */
export function parseLogLine(line: string): LoggedRequest | undefined {
  const match = LINE.exec(line);
  if (!match) return undefined;
  const [, client, day, month, year, hour, minute, second, sign, zoneHours, zoneMinutes] = match;
  const monthIndex = MONTHS.indexOf(month as string);
  if (monthIndex < 0) return undefined;
  const zone = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === '-' ? -1 : 1);
  const utc = Date.UTC(Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second));
  return { client: client as string, at: utc - zone * 60_000 };
}

/** The lines of a log, read as they are asked for: files may be larger than memory. */
export async function* readLogLines(file: string): AsyncIterable<string> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) if (line !== '') yield line;
}

/** What a log holds, as far as a replay must know before it begins. */
export interface LogSurvey {
  readonly requests: number;
  readonly unparsed: number;
  /** The first lines that could not be read, cut short. */
  readonly samples: readonly string[];
  readonly from: EpochMilliseconds;
  readonly to: EpochMilliseconds;
}

const SAMPLES = 3;
const SAMPLE_LENGTH = 80;

/** Reads a log once from end to end. */
export async function surveyLog(file: string): Promise<LogSurvey> {
  let requests = 0;
  let unparsed = 0;
  const samples: string[] = [];
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for await (const line of readLogLines(file)) {
    const request = parseLogLine(line);
    if (!request) {
      unparsed += 1;
      if (samples.length < SAMPLES) samples.push(line.slice(0, SAMPLE_LENGTH));
      continue;
    }
    requests += 1;
    from = Math.min(from, request.at);
    to = Math.max(to, request.at);
  }
  return { requests, unparsed, samples, from, to };
}
