import { seeded, shuffle } from './statistics.mjs';

const LENGTH = 19;

/** The name of key `i`: 19 characters, as an address or a tenant's id may have. */
export function keyName(i) {
  return `tenant-${String(i).padStart(LENGTH - 7, '0')}`;
}

/** `count` indices below `keys`: each alike (`uniform`), or by rank with exponent 1 (`zipf`), the ranks shuffled. */
export function drawKeys(pattern, keys, count, seed = 1) {
  const random = seeded(seed);
  const drawn = new Uint32Array(count);
  if (pattern === 'uniform') {
    for (let i = 0; i < count; i++) drawn[i] = Math.floor(random() * keys);
    return drawn;
  }
  const sums = new Float64Array(keys);
  let sum = 0;
  for (let rank = 0; rank < keys; rank++) {
    sum += 1 / (rank + 1);
    sums[rank] = sum;
  }
  // Which key has which rank: neighbours in popularity must not be neighbours in memory.
  const places = shuffle(
    Uint32Array.from({ length: keys }, (_, i) => i),
    seeded(7),
  );
  for (let i = 0; i < count; i++) {
    const wanted = random() * sum;
    let low = 0;
    let high = keys - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sums[middle] < wanted) low = middle + 1;
      else high = middle;
    }
    drawn[i] = places[low];
  }
  return drawn;
}

/**
 * Makes strings that no table has seen: flat, in the heap, their hash not computed yet. That is what a key is that was
 * just read from a header; a literal, or a string that was used as a key before, is looked up faster.
 */
export class FreshKeys {
  #names;

  constructor(keys) {
    this.#names = Buffer.allocUnsafe(keys * LENGTH);
    for (let i = 0; i < keys; i++) this.#names.write(keyName(i), i * LENGTH, 'latin1');
  }

  /** Fills `into` with fresh copies of the names of `indices`, from `from` on. */
  fill(into, indices, from) {
    for (let i = 0; i < into.length; i++) {
      const at = indices[(from + i) % indices.length] * LENGTH;
      into[i] = this.#names.latin1Slice(at, at + LENGTH);
    }
  }
}
