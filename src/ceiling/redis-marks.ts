import { CeilingError, show } from '../errors.js';
import { type Random, randomId } from '../time.js';
import type { Mark, MarkCall, MarkFeed, MarkReply, MarkStore } from './mark-store.js';
import type { RedisClient } from './redis-client.js';
import { runScript } from './redis-script.js';
import { marksScript } from './scripts.generated.js';

/** What the script needs to know of the ceiling it belongs to. */
export interface RedisMarksOptions {
  readonly client: RedisClient;
  readonly prefix: string;
  /** Whether the server may be asked who it is. */
  readonly mayIdentify: () => boolean;
  readonly random?: Random | undefined;
}

/** Of a reply to a feed, before its marks; and of each of them. */
const HEAD_LENGTH = 6;
const MARK_LENGTH = 5;

/** The marks of a fleet in Redis, by `lua/marks.lua`: all of them in one slot of a cluster, as they are few. */
export class RedisMarks implements MarkStore {
  readonly #options: RedisMarksOptions;
  readonly #keys: readonly string[];

  constructor(options: RedisMarksOptions) {
    this.#options = options;
    this.#keys = ['m', 's', 'e'].map((part) => `{${options.prefix}:marks}:${part}`);
  }

  async mark(call: MarkCall): Promise<MarkReply> {
    const { policy, key } = call;
    const reply = await this.#run(markArguments(call));
    if (!Array.isArray(reply) || reply.length !== 6 || typeof reply[0] !== 'string' || !reply.slice(1).every(isWhole)) {
      throw new CeilingError(`Expected a reply of the marks script, got ${show(reply)}.`);
    }
    const [era, now, seq, until, step, reset] = reply as [string, number, number, number, number, number];
    return { era, now, mark: { policy, key, seq, until, step, reset } };
  }

  async feed(era: string, seq: number, reading: boolean): Promise<MarkFeed> {
    return decodeFeed(await this.#run(['feed', era, String(seq), reading ? '1' : '0']));
  }

  async #run(args: readonly string[]): Promise<unknown> {
    const { client, mayIdentify, random } = this.#options;
    const head = [mayIdentify() ? '1' : '0', randomId(random)];
    try {
      return await runScript(client, marksScript, this.#keys, [...head, ...args]);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CeilingError(`The ceiling in Redis did not execute the call: ${reason}`, { cause: error });
    }
  }
}

/** A call as the script takes it. */
export function markArguments(call: MarkCall): string[] {
  const name = `${call.policy}:${call.key}`;
  return call.kind === 'block' ? [call.kind, name, String(call.forgetAfter), call.steps.join(' ')] : [call.kind, name];
}

/** A feed as the script gives it. */
export function decodeFeed(reply: unknown): MarkFeed {
  const fits =
    Array.isArray(reply) &&
    reply.length >= HEAD_LENGTH &&
    (reply.length - HEAD_LENGTH) % MARK_LENGTH === 0 &&
    reply.every((item, i) => (isName(i) ? typeof item === 'string' : isWhole(item)));
  if (!fits) throw new CeilingError(`Expected a feed of the marks script, got ${show(reply)}.`);
  const [era, born, now, fresh, seq, more] = reply as [string, number, number, number, number, number];
  const marks: Mark[] = [];
  for (let i = HEAD_LENGTH; i < reply.length; i += MARK_LENGTH) {
    const [name, seq, until, step, reset] = reply.slice(i, i + MARK_LENGTH) as [string, number, number, number, number];
    // No policy's name holds a colon.
    const colon = name.indexOf(':');
    marks.push({ policy: name.slice(0, colon), key: name.slice(colon + 1), seq, until, step, reset });
  }
  return { era, born, now, fresh: fresh === 1, marks, seq, more: more === 1 };
}

function isName(index: number): boolean {
  return index === 0 || (index >= HEAD_LENGTH && (index - HEAD_LENGTH) % MARK_LENGTH === 0);
}

function isWhole(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}
