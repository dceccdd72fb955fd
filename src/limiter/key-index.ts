/** A shard with so many keys is split before it takes another: no more is copied at most when one key is added. */
const MOST_IN_A_SHARD = 16_384;
/** Splits of one shard, one after another: keys that still lie together then differ in nothing that is looked at. */
const MOST_BITS = 12;

/** Some of the keys: those whose mixed characters end in the same `bits` bits. */
interface Shard {
  readonly slots: Map<string, number>;
  readonly bits: number;
}

/**
 * Finds the slot of a key. As one `Map` it would stop the process whenever it grows, for 0.1 s and more at a million
 * keys, so there are many small ones: a shard that is full is split in two by one more bit of a mix of some of the key's
 * characters (extendible hashing). While there is one shard nothing is mixed. Keys that were made to end up together,
 * which cost their maker nothing, only lose the splitting: their shard grows as a `Map` does.
 */
export class KeyIndex {
  #shards: Shard[];
  #mask = 0;
  /** The one shard there is, while there is one. */
  #only: Map<string, number> | undefined;

  constructor() {
    this.#only = new Map();
    this.#shards = [{ slots: this.#only, bits: 0 }];
  }

  get(key: string): number | undefined {
    return this.#only === undefined ? this.#shardOf(key).slots.get(key) : this.#only.get(key);
  }

  /** Adds a key that is not there. */
  add(key: string, slot: number): void {
    const shard = this.#shardOf(key);
    // Before: this very key would make the map grow once more.
    if (shard.slots.size >= MOST_IN_A_SHARD && shard.bits < MOST_BITS) this.#split(shard, mixed(key));
    this.#shardOf(key).slots.set(key, slot);
  }

  delete(key: string): void {
    this.#shardOf(key).slots.delete(key);
  }

  /** Forgets that there ever were many, once there are none. */
  clear(): void {
    this.#only = new Map();
    this.#shards = [{ slots: this.#only, bits: 0 }];
    this.#mask = 0;
  }

  #shardOf(key: string): Shard {
    return this.#shards[mixed(key) & this.#mask] as Shard;
  }

  /** @param mix of a key in the shard */
  #split(shard: Shard, mix: number): void {
    const bits = shard.bits + 1;
    this.#only = undefined;
    if (1 << shard.bits === this.#shards.length) {
      this.#shards = this.#shards.concat(this.#shards);
      this.#mask = this.#shards.length - 1;
    }
    const bit = 1 << shard.bits;
    const halves: readonly [Shard, Shard] = [
      { slots: new Map(), bits },
      { slots: new Map(), bits },
    ];
    for (const [key, slot] of shard.slots) halves[mixed(key) & bit ? 1 : 0].slots.set(key, slot);
    for (let i = mix & (bit - 1); i < this.#shards.length; i += bit) this.#shards[i] = halves[i & bit ? 1 : 0];
  }
}

/** Mixes the last characters of a key and some of the others: all of a short one, every second one of 16 to 31, … */
function mixed(key: string): number {
  const { length } = key;
  const step = 1 + (length >> 4);
  let mix = length;
  let i = length - 1;
  for (const near = Math.max(0, i - 3); i > near; i -= 1) mix = Math.imul(mix ^ key.charCodeAt(i), 0x01000193);
  for (; i >= 0; i -= step) mix = Math.imul(mix ^ key.charCodeAt(i), 0x01000193);
  mix = Math.imul(mix ^ (mix >>> 15), 0x85ebca6b);
  return mix ^ (mix >>> 13);
}
