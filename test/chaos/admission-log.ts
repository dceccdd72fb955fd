import { closeSync, openSync, readSync } from 'node:fs';
import { ADMISSION_FIELDS } from './instance/messages.js';
import type { Admission } from './window-oracle.js';

const RECORD_BYTES = ADMISSION_FIELDS * Float64Array.BYTES_PER_ELEMENT;

/** All that a fleet has admitted so far, read from the files its processes write; also of those that were killed. */
export class AdmissionLog {
  readonly #files = new Map<string, { descriptor: number; offset: number }>();
  #admissions: Admission[] = [];

  add(path: string): void {
    if (!this.#files.has(path)) this.#files.set(path, { descriptor: openSync(path, 'a+'), offset: 0 });
  }

  /** In the order of their times. */
  read(): readonly Admission[] {
    let grown = false;
    for (const file of this.#files.values()) {
      const buffer = Buffer.alloc(64 * 1024 - ((64 * 1024) % RECORD_BYTES));
      for (;;) {
        const bytes = readSync(file.descriptor, buffer, 0, buffer.length, file.offset);
        // What a process that was killed wrote by half is no admission.
        const whole = bytes - (bytes % RECORD_BYTES);
        if (whole === 0) break;
        file.offset += whole;
        grown = true;
        for (let offset = 0; offset < whole; offset += RECORD_BYTES) {
          this.#admissions.push({
            at: buffer.readDoubleLE(offset),
            cost: buffer.readDoubleLE(offset + 8),
            key: buffer.readDoubleLE(offset + 16),
          });
        }
      }
    }
    if (grown) this.#admissions = this.#admissions.toSorted((a, b) => a.at - b.at);
    return this.#admissions;
  }

  close(): void {
    for (const { descriptor } of this.#files.values()) closeSync(descriptor);
    this.#files.clear();
  }
}
