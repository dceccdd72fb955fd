import type { Redis } from 'ioredis';
import { assembleScript } from '../../scripts/embed-lua.mjs';
import type { Bucket } from '../../src/ceiling/bucket.js';
import { type LeaseCall, type LeaseReply, partitionOf } from '../../src/ceiling/ceiling-store.js';
import { execute, newPartition, type Partition, suspect } from '../../src/ceiling/ledger.js';
import { decodeLeaseReplies, LeaseArguments, leaseKeys } from '../../src/ceiling/redis-lease-codec.js';
import type { Microseconds } from '../../src/units.js';

/** `lua/lease.lua` with a clock and an identity that a test sets. */
export const testScript = assembleScript('lease.lua', {
  replace: { clock: 'clock-from-argument', server: 'server-from-argument' },
});

/** Every number of every record of a bucket, as full as doubles are: 17 digits. */
const DUMP = `
local dump, fields = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  local values = {}
  if fields[i] == 'l' then
    for place = 1, #fields[i + 1], 8 do values[#values + 1] = struct.unpack('>d', fields[i + 1], place) end
  else
    values = { cmsgpack.unpack(fields[i + 1]) }
  end
  for j = 1, #values do
    values[j] = type(values[j]) == 'number' and string.format('%.17g', values[j]) or tostring(values[j])
  end
  dump[#dump + 1] = fields[i]
  dump[#dump + 1] = values
end
return dump`;

/** Whose word is taken for the store's time and the server's identity. */
export interface Moment {
  now: Microseconds;
  /** '' unknown. */
  server: string;
  newStore: 'empty' | 'full';
}

/** What a bucket keeps of windows, in the order in which the Lua packs it; and its log. */
function windowOf({ length, window, clearedAt }: Bucket): [number[], number[]] {
  const { start, end, current, previous, lastFrom, times, amounts } = window;
  const log = times.flatMap((time, index) => [time, amounts[index] ?? Number.NaN]);
  return [[length, start, end, current, previous, lastFrom, clearedAt], log];
}

/** One store kept twice: by the Lua in a real Redis, and by the model. Neither sees the other. */
export class LedgerPair {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #partitions = new Map<number, { partition: Partition; server: string }>();
  #eras = 0;

  constructor(redis: Redis, prefix: string) {
    this.#redis = redis;
    this.#prefix = prefix;
  }

  /** Executes the calls in one script, and one after the other in the model. */
  async execute(calls: readonly LeaseCall[], moment: Moment): Promise<{ lua: LeaseReply[]; model: LeaseReply[] }> {
    this.#eras += 1;
    const newEra = `era-${String(this.#eras).padStart(12, '0')}`;
    const keys = calls.flatMap((call) => leaseKeys(this.#prefix, call));
    const numbers = new LeaseArguments(calls.length);
    for (const call of calls) numbers.add(call);
    const args = [newEra, '1', moment.newStore, ...numbers.list, moment.server, String(moment.now)];
    const rest = [String(keys.length), ...keys, ...args];
    const answer = await this.#redis
      .callBuffer('evalsha', [testScript.sha1, ...rest])
      .catch((error: Error) =>
        error.message.startsWith('NOSCRIPT')
          ? this.#redis.callBuffer('eval', [testScript.source, ...rest])
          : Promise.reject(error),
      );
    const model = calls.map((call) => this.#model(call, newEra, moment));
    return { lua: decodeLeaseReplies(answer, calls.length), model };
  }

  /** All data is lost. */
  async lose(): Promise<void> {
    for (const index of this.#partitions.keys()) {
      const keys = await this.#redis.keys(`{${this.#prefix}:${index}}:*`);
      if (keys.length > 0) await this.#redis.del(...keys);
    }
    this.#partitions.clear();
  }

  /** One bucket is lost, by eviction or by hand. */
  async loseBucket(call: LeaseCall): Promise<void> {
    await this.#redis.del(leaseKeys(this.#prefix, call)[1]);
    this.#partitions.get(partitionOf(call.policy, call.key))?.partition.buckets.delete(`${call.policy}:${call.key}`);
  }

  /** What both hold about a call's bucket, in the same words; nothing where it is not there any more at `now`. */
  async inspect(call: LeaseCall, now: Microseconds): Promise<{ lua: unknown; model: unknown }> {
    const known = this.#partitions.get(partitionOf(call.policy, call.key))?.partition;
    const bucket = known?.buckets.get(`${call.policy}:${call.key}`);
    if (!bucket || bucket.expiresAt <= now) return { lua: undefined, model: undefined };
    const dump = (await this.#redis.eval(DUMP, 1, leaseKeys(this.#prefix, call)[1])) as (string | string[])[];
    const records = new Map<string, string[]>();
    for (let i = 0; i < dump.length; i += 2) records.set(dump[i] as string, dump[i + 1] as string[]);
    const numbersOf = (name: string): number[] => (records.get(name) ?? []).map(Number);
    const [at = 0, tokens, remainder, outstanding, lastEnd = 0, sweepAt = 0, expiresAt = 0, members] = numbersOf('b');
    const [version, burst, rateNum, rateDen, , incarnation, longestLease, paidUntil] = numbersOf('t');
    const holderIds = [...records.keys()].filter((name) => name.length > 1).sort();
    const lua = {
      level: { tokens, remainder, at },
      outstanding,
      ends: [lastEnd + at, sweepAt + at, expiresAt + at],
      terms: [version, burst, rateNum, rateDen, records.get('t')?.[4], incarnation, longestLease, paidUntil],
      members,
      window: call.window ? [numbersOf('w'), numbersOf('l')] : [],
      classes: numbersOf('c'),
      holders: holderIds.map((id) => {
        const [creditAt = 0, out, seq, leaseEnd = 0, memberUntil = 0, demand, weight, credit] = numbersOf(id);
        const end = leaseEnd + creditAt;
        return [id, out, seq, end, memberUntil + end, demand, weight, credit, creditAt];
      }),
    };
    const classes = [...bucket.classes].sort(([a], [b]) => a - b);
    const model = {
      level: bucket.level,
      outstanding: bucket.outstanding,
      ends: [bucket.lastEnd, bucket.sweepAt, bucket.expiresAt],
      terms: [
        ...[bucket.version, bucket.burst, bucket.rateNum, bucket.rateDen, bucket.era, bucket.incarnation],
        ...[bucket.longestLease, bucket.paidUntil],
      ],
      members: bucket.members,
      window: call.window ? windowOf(bucket) : [],
      classes: classes.flatMap(([index, { demand, weight }]) => [index, demand, weight]),
      holders: [...bucket.holders.keys()].sort().map((id) => {
        const holder = bucket.holders.get(id);
        if (!holder) return [];
        const { outstanding, seq, leaseEnd, memberUntil, demand, weight, credit, creditAt } = holder;
        // MessagePack has no negative zero.
        return [id, outstanding, seq, leaseEnd, memberUntil, demand, weight, credit + 0, creditAt];
      }),
    };
    return { lua, model };
  }

  #model(call: LeaseCall, newEra: string, { now, server, newStore }: Moment): LeaseReply {
    const index = partitionOf(call.policy, call.key);
    const execution = { now, newEra, newStore };
    let known = this.#partitions.get(index);
    if (!known) {
      known = { partition: newPartition(execution), server };
      this.#partitions.set(index, known);
    } else if (server !== '' && server !== known.server) {
      if (known.server !== '') suspect(known.partition, newEra, now);
      known.server = server;
    }
    return execute(known.partition, call, execution);
  }
}
