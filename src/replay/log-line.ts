import type { Microseconds } from '../units.js';
import { accessLogTime, logTime } from './log-time.js';

/** One line of a log, taken apart as far as is needed to know when it was and to look its fields up. */
export interface LogLine {
  readonly at: Microseconds;
  /** The field `name`; `undefined` where the line has none. */
  field(name: string): unknown;
}

/** Reads one line; answers why it can't where it can't. */
export type LineParser = (line: string) => LogLine | string;

/** Client, identity, user, time, request line and, where they are, status and bytes, referrer and agent. */
const ACCESS_LINE =
  /^(\S{1,512}) (\S+) (.*?) ?\[([^\]]{1,40})\] "((?:[^"\\]|\\.)*)"(?: (\S+) (\S+)(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)")?)?/;
const REQUEST = /^(\S+) (\S+)/;
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i;

/** The fields of a line of an access log, by name. */
export const ACCESS_FIELDS = ['address', 'user', 'method', 'path', 'status', 'bytes', 'referer', 'agent'] as const;

class AccessLine implements LogLine {
  readonly at: Microseconds;
  readonly #match: RegExpExecArray;

  constructor(at: Microseconds, match: RegExpExecArray) {
    this.at = at;
    this.#match = match;
  }

  field(name: string): string | undefined {
    const match = this.#match;
    switch (name) {
      case 'address':
        return match[1];
      case 'user':
        return given(match[3]);
      case 'method':
        return REQUEST.exec(match[5] ?? '')?.[1];
      case 'path':
        return pathOf(REQUEST.exec(match[5] ?? '')?.[2]);
      case 'status':
        return given(match[6]);
      case 'bytes':
        return given(match[7]);
      case 'referer':
        return given(match[8]);
      case 'agent':
        return given(match[9]);
      default:
        return undefined;
    }
  }
}

/** Reads lines in common or combined log format. */
export function accessLineParser(): LineParser {
  // Busy logs have many lines a second, and all of them the same text for it.
  let knownText = '';
  let knownAt: Microseconds | undefined;
  return (line) => {
    const match = ACCESS_LINE.exec(line);
    if (!match) return 'not in common or combined log format';
    const text = match[4] as string;
    if (text !== knownText) {
      knownText = text;
      knownAt = accessLogTime(text);
    }
    return knownAt === undefined ? `no time in "[${text}]"` : new AccessLine(knownAt, match);
  };
}

/** Reads lines that are JSON objects. Names of fields may lead into objects: `client.address`. */
export function jsonLineParser(timeField: string): LineParser {
  return (line) => {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return 'not JSON';
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not a JSON object';
    const field = (name: string): unknown => fieldOf(value, name);
    const at = logTime(field(timeField));
    return at === undefined ? `no time in its field "${timeField}"` : { at, field };
  };
}

/** A field with just that name, or else the one that its parts between dots lead to. */
function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Object.hasOwn(value, name)) return (value as Record<string, unknown>)[name];
  const dot = name.indexOf('.');
  if (dot < 0 || !Object.hasOwn(value, name.slice(0, dot))) return undefined;
  return fieldOf((value as Record<string, unknown>)[name.slice(0, dot)], name.slice(dot + 1));
}

/** The path a request asks for: without its query, and without the origin that proxies put before it. */
export function pathOf(target: string | undefined): string | undefined {
  if (target === undefined) return undefined;
  const path = target.replace(ORIGIN, '').split(/[?#]/, 1)[0];
  return path === '' ? '/' : path;
}

/** Logs write `-` for what there is not. */
function given(text: string | undefined): string | undefined {
  return text === '-' || text === '' ? undefined : text;
}
