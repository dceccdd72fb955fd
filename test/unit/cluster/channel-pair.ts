import { EventEmitter } from 'node:events';
import type { Channel } from '../../../src/cluster/index.js';

/** One end of an IPC channel in this process: what is sent comes out of the other end as JSON carries it. */
export class FakeChannel extends EventEmitter implements Channel {
  connected = true;
  readonly sent: unknown[] = [];
  #other: FakeChannel | undefined;

  static pair(): { worker: FakeChannel; primary: FakeChannel } {
    const worker = new FakeChannel();
    const primary = new FakeChannel();
    worker.#other = primary;
    primary.#other = worker;
    return { worker, primary };
  }

  send(message: unknown, _handle: undefined, _options: undefined, sent: (error: Error | null) => void): boolean {
    const copy: unknown = JSON.parse(JSON.stringify(message));
    this.sent.push(copy);
    setImmediate(() => {
      if (this.#other?.connected) this.#other.emit('message', copy);
      sent(null);
    });
    return true;
  }

  /** Closes both ends, as the death of either process does. */
  cut(): void {
    for (const end of [this, this.#other]) {
      if (!end?.connected) continue;
      end.connected = false;
      end.emit('disconnect');
    }
  }

  /** How many listen here, to anything. */
  get listening(): number {
    return this.listenerCount('message') + this.listenerCount('disconnect');
  }
}
