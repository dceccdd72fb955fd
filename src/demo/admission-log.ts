import { closeSync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Milliseconds } from '../index.js';

const BYTES = Float64Array.BYTES_PER_ELEMENT;

function fileOf(directory: string, instance: number): string {
  return join(directory, `${instance}.admissions`);
}

/**
 * Where an instance writes the time of each admission, at once and into a file: what a process that is killed has
 * admitted must count too.
 */
export class AdmissionLog {
  readonly #file: number;
  readonly #entry = new Float64Array(1);
  readonly #bytes = new Uint8Array(this.#entry.buffer);

  constructor(directory: string, instance: number) {
    this.#file = openSync(fileOf(directory, instance), 'a');
  }

  append(at: Milliseconds): void {
    this.#entry[0] = at;
    writeSync(this.#file, this.#bytes);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** All admissions of an instance so far, in order. */
export function readAdmissions(directory: string, instance: number): Float64Array {
  const bytes = readFileSync(fileOf(directory, instance));
  const whole = bytes.length - (bytes.length % BYTES);
  return new Float64Array(Uint8Array.from(bytes.subarray(0, whole)).buffer);
}

/** How many admissions an instance has written so far. */
export function countAdmissions(directory: string, instance: number): number {
  return Math.floor((statSync(fileOf(directory, instance), { throwIfNoEntry: false })?.size ?? 0) / BYTES);
}
