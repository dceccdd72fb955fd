/** A map that can't change any more. `Object.freeze` alone would leave `set` working on a `Map`. */
export class FrozenMap<K, V> extends Map<K, V> {
  constructor(entries: Iterable<readonly [K, V]>) {
    super();
    for (const [key, value] of entries) super.set(key, value);
    Object.freeze(this);
  }

  override set(): never {
    throw new TypeError('Expected nobody to change a policy: publish a new version of it.');
  }

  override delete(): never {
    return this.set();
  }

  override clear(): never {
    return this.set();
  }
}
