import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KeyIndex } from '../../../src/limiter/key-index.js';

/** Keys as people have them, and such as differ in one place only. */
const FAMILIES: Record<string, (i: number) => string> = {
  numbered: (i) => `user-${i}`,
  padded: (i) => `tenant-${String(i).padStart(12, '0')}`,
  addresses: (i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`,
  mail: (i) => `${i.toString(36)}@example.com`,
  paths: (i) => `/api/v1/users/${i}/orders`,
  short: (i) => String.fromCodePoint(0x4e00 + i),
};

/** How many entries of maps are written in the course of `what`. */
function writesOf(what: () => void): number {
  const { set } = Map.prototype;
  let writes = 0;
  Map.prototype.set = function (this: Map<unknown, unknown>, key, value) {
    writes += 1;
    return set.call(this, key, value) as typeof this;
  };
  try {
    what();
  } finally {
    Map.prototype.set = set;
  }
  return writes;
}

describe('a key index', () => {
  it.each(Object.keys(FAMILIES))('finds every one of very many keys, and moves few of them at once: %s', (family) => {
    const name = FAMILIES[family] as (i: number) => string;
    const count = family === 'short' ? 20_000 : 50_000;
    const index = new KeyIndex();
    let most = 0;
    for (let i = 0; i < count; i++) {
      const add = (): void => index.add(name(i), i);
      most = Math.max(most, writesOf(add));
    }
    for (let i = 0; i < count; i++) if (index.get(name(i)) !== i) expect.fail(`Expected to find ${name(i)}.`);
    expect(index.get(name(count))).toBeUndefined();
    expect(most).toBeLessThan(20_000);
    for (let i = 0; i < count; i += 2) index.delete(name(i));
    for (let i = 0; i < count; i++) expect(index.get(name(i)) === undefined).toBe(i % 2 === 0);
  });

  it('finds keys that were made to end up together, and gives up splitting them', () => {
    const index = new KeyIndex();
    const name = (i: number): string => `x${String.fromCharCode(i)}${'-'.repeat(64)}`;
    const writes = writesOf(() => {
      for (let i = 0; i < 30_000; i++) index.add(name(i), i);
    });
    // Each of twelve bits is tried once.
    expect(writes).toBeLessThan(30_000 + 13 * 16_400);
    for (let i = 0; i < 30_000; i++) if (index.get(name(i)) !== i) expect.fail(`Expected to find key ${i}.`);
  });

  it('is a map, whatever is done to it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'clear'), fc.string({ minLength: 1, maxLength: 3 }))),
        (steps) => {
          const index = new KeyIndex();
          const model = new Map<string, number>();
          for (const [i, [what, key]] of steps.entries()) {
            if (what === 'add' && !model.has(key)) {
              index.add(key, i);
              model.set(key, i);
            } else if (what === 'delete') {
              index.delete(key);
              model.delete(key);
            } else if (what === 'clear' && i % 7 === 0) {
              index.clear();
              model.clear();
            }
            expect(index.get(key)).toBe(model.get(key));
          }
        },
      ),
    );
  });
});
