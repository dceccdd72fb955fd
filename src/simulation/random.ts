/**
 * A stream of chance that is the same each time for the same seed and name: sfc32, seeded from a hash of both. Every
 * part of a simulation has a stream of its own, so that a change in one does not re-deal the cards of the others.
 */
export class Dice {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, name: string) {
    const text = `${seed}/${name}`;
    this.#a = hash(text, 0x811c9dc5);
    this.#b = hash(text, 0x9e3779b9);
    this.#c = hash(text, 0x85ebca6b);
    for (let i = 0; i < 12; i++) this.roll();
  }

  /** Uniform in [0, 1); a function by itself, to be handed on. */
  readonly roll = (): number => {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return (sum >>> 0) / 4_294_967_296;
  };

  /** Exponentially distributed with this mean: the gap to the next of events that know nothing of each other. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.roll());
  }

  /** Whether something happens that has this chance; costs no roll where it never does. */
  chance(probability: number): boolean {
    return probability > 0 && this.roll() < probability;
  }
}

function hash(text: string, start: number): number {
  let value = start;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value | 0;
}
