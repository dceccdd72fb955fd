import { CeilingError, show } from '../errors.js';
import { partitionOf } from './ceiling-store.js';
import type { PaceCall, PaceReply, PaceStore } from './pace-store.js';
import type { RedisClient } from './redis-client.js';
import { partOf, repliesTo, replyAt, runScript } from './redis-script.js';
import { paceScript } from './scripts.generated.js';

/** Calls in one script, so that nobody else waits for long. */
const MOST_CALLS = 64;
/** The whole numbers of a call in the order in which `lua/pace.lua` reads them. */
const NUMBERS = ['seq', 'version', 'rateNum', 'rateDen', 'queue'] as const satisfies readonly (keyof PaceCall)[];
/** Of a reply, before its slots. */
const HEAD_LENGTH = 5;

interface Batch {
  readonly keys: string[];
  readonly args: string[];
}

/** The schedules of a fleet in Redis, by `lua/pace.lua`. */
export class RedisPace implements PaceStore {
  readonly #client: RedisClient;
  readonly #prefix: string;

  constructor(client: RedisClient, prefix: string) {
    this.#client = client;
    this.#prefix = prefix;
  }

  pace(calls: readonly PaceCall[]): Promise<PaceReply>[] {
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
      const index = batch.keys.push(`${tag}:p:${call.policy}:${call.key}`) - 1;
      batch.args.push(...paceArguments(call));
      return { batch, index };
    });
    const answers = new Map(batches.map((batch) => [batch, this.#send(batch)]));
    return places.map(({ batch, index }) => replyAt(answers.get(batch), index));
  }

  #send(batch: Batch): Promise<(PaceReply | Error)[]> {
    const { keys, args } = batch;
    const size = keys.length;
    const only = (index: number): Batch => ({ keys: partOf(keys, index, size), args: partOf(args, index, size) });
    return repliesTo(batch, { size, only, execute: (batch) => this.#execute(batch) });
  }

  async #execute({ keys, args }: Batch): Promise<PaceReply[]> {
    let answer: unknown;
    try {
      answer = await runScript(this.#client, paceScript, keys, args);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CeilingError(`The ceiling in Redis did not execute the call: ${reason}`, { cause: error });
    }
    if (!Array.isArray(answer) || answer.length !== keys.length) {
      throw new CeilingError(`Expected ${keys.length} replies of the pace script, got ${show(answer)}.`);
    }
    return answer.map(decodePaceReply);
  }
}

/** A call as the script takes it. */
export function paceArguments(call: PaceCall): string[] {
  return [call.holder, ...NUMBERS.map((name) => String(call[name])), call.costs.join(' ')];
}

/** A reply as the script gives it. */
export function decodePaceReply(reply: unknown): PaceReply {
  const isReply =
    Array.isArray(reply) &&
    reply.length >= HEAD_LENGTH &&
    reply.every((item) => Number.isSafeInteger(item) && (item as number) >= 0);
  if (!isReply) throw new CeilingError(`Expected a reply of the pace script, got ${show(reply)}.`);
  const [status, seq, now, behind, version, ...slots] = reply as [number, number, number, number, number];
  return { seq, status: status === 0 ? 'reserved' : 'stale', now, slots, behind, version };
}
