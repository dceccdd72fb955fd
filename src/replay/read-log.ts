import type { Readable } from 'node:stream';
import type { Microseconds } from '../units.js';
import { logLines } from './log-lines.js';
import { ReorderBuffer } from './reorder-buffer.js';
import type { LoggedRequest } from './request.js';

/** A line that no request could be read from. */
export interface Malformed {
  /** From 1. */
  readonly line: number;
  readonly reason: string;
  /** Its beginning. */
  readonly text: string;
}

/** What was read of a log. */
export interface LogReading {
  readonly lines: number;
  readonly malformed: number;
  /** The first of them. */
  readonly samples: readonly Malformed[];
  /** Lines that came too late to be put in their place. */
  readonly late: number;
}

/** Settings of {@link readLog}. */
export interface ReadLogOptions {
  /** How much earlier than one before it a line may be. */
  readonly reorder: Microseconds;
  /** Picks the reader by the first line that is not empty. */
  readonly reader: (firstLine: string) => (line: string) => LoggedRequest | string;
  /** Told each request, in order of time but for late ones. */
  readonly request: (request: LoggedRequest) => void;
  /** Told how many bytes have been read. */
  readonly progress: (bytes: number) => void;
}

const SAMPLES = 3;
const SAMPLE_LENGTH = 80;
/** Requests held at a time to be put in order. */
const MOST_HELD = 200_000;

/** Reads a log from end to end, in memory that does not grow with it. */
export async function readLog(source: Readable, options: ReadLogOptions): Promise<LogReading> {
  const { request, progress } = options;
  const buffer = new ReorderBuffer<LoggedRequest>(options.reorder, MOST_HELD);
  const samples: Malformed[] = [];
  let reader: ((line: string) => LoggedRequest | string) | undefined;
  let lines = 0;
  let malformed = 0;
  for await (const batch of logLines(source, progress)) {
    for (const text of batch) {
      lines += 1;
      if (text === '' || text === '\r') continue;
      reader ??= options.reader(text);
      const read = reader(text);
      if (typeof read === 'string') {
        malformed += 1;
        if (samples.length < SAMPLES) samples.push({ line: lines, reason: read, text: text.slice(0, SAMPLE_LENGTH) });
        continue;
      }
      buffer.push(read);
      for (let due = buffer.shift(); due; due = buffer.shift()) request(due);
    }
  }
  for (let left = buffer.flush(); left; left = buffer.flush()) request(left);
  return { lines, malformed, samples, late: buffer.late };
}
