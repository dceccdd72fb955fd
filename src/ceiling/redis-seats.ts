import { CeilingError, show } from '../errors.js';
import { partitionOf } from './ceiling-store.js';
import type { RedisClient } from './redis-client.js';
import { partOf, repliesTo, replyAt, runScript } from './redis-script.js';
import { seatsScript } from './scripts.generated.js';
import type { SeatCall, SeatReply, SeatStore } from './seat-store.js';

/** Calls in one script, so that nobody else waits for long. */
const MOST_CALLS = 64;
/** The whole numbers of a call in the order in which `lua/seats.lua` reads them. */
const NUMBERS = ['seq', 'version', 'limit', 'held', 'want', 'lostAfter'] as const satisfies readonly (keyof SeatCall)[];
const REPLY_LENGTH = 6;

interface Batch {
  readonly keys: string[];
  readonly args: string[];
}

/** The seats of a fleet in Redis, by `lua/seats.lua`. */
export class RedisSeats implements SeatStore {
  readonly #client: RedisClient;
  readonly #prefix: string;

  constructor(client: RedisClient, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  hold(calls: readonly SeatCall[]): Promise<SeatReply>[] {
    const open = new Map<string, Batch>();
    const batches: Batch[] = [];
    const places = calls.map((call) => {
      const tag = `{${this.#prefix}:${partitionOf(call.policy, call.key)}}`;
      // In a cluster the keys of one script share a slot, and so a partition.
      const node = this.#client.isCluster ? tag : '';
      let batch = open.get(node);
      if (!batch || batch.keys.length === MOST_CALLS) {
        batch = { keys: [], args: [] };
        open.set(node, batch);
        batches.push(batch);
      }
      const index = batch.keys.push(`${tag}:s:${call.policy}:${call.key}`) - 1;
      batch.args.push(call.holder, ...NUMBERS.map((name) => String(call[name])));
      return { batch, index };
    });
    const answers = new Map(batches.map((batch) => [batch, this.#send(batch)]));
    return places.map(({ batch, index }) => replyAt(answers.get(batch), index));
  }

  #send(batch: Batch): Promise<(SeatReply | Error)[]> {
    const { keys, args } = batch;
    const size = keys.length;
    const only = (index: number): Batch => ({ keys: partOf(keys, index, size), args: partOf(args, index, size) });
    return repliesTo(batch, { size, only, execute: (batch) => this.#execute(batch) });
  }

  async #execute({ keys, args }: Batch): Promise<SeatReply[]> {
    let answer: unknown;
    try {
      answer = await runScript(this.#client, seatsScript, keys, args);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CeilingError(`The ceiling in Redis did not execute the call: ${reason}`, { cause: error });
    }
    if (!Array.isArray(answer) || answer.length !== keys.length) {
      throw new CeilingError(`Expected ${keys.length} replies of the seats script, got ${show(answer)}.`);
    }
    return answer.map(decode);
  }
}

function decode(reply: unknown): SeatReply {
  const isReply =
    Array.isArray(reply) &&
    reply.length === REPLY_LENGTH &&
    reply.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
  if (!isReply) throw new CeilingError(`Expected a reply of the seats script, got ${show(reply)}.`);
  const [status, seq, granted, taken, most, version] = reply as [number, number, number, number, number, number];
  return { seq, status: status === 0 ? 'granted' : 'stale', granted, taken, most, version };
}
