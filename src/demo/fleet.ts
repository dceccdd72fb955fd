import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Milliseconds } from '../index.js';
import { hostNow } from './host-clock.js';
import {
  type DoneRequest,
  type FromInstance,
  type FromPrimary,
  type InstanceReport,
  SETTINGS_VARIABLE,
} from './protocol.js';

/** Told of what becomes of a fleet. */
export interface FleetListener {
  fenced?(instance: number, version: number, at: Milliseconds): void;
  trouble?(instance: number, message: string): void;
  replayed?(instance: number, requests: readonly DoneRequest[]): void;
}

interface Member {
  readonly worker: Worker;
  readonly ready: Promise<void>;
  readonly gone: Promise<void>;
  offered: number;
  report: InstanceReport | undefined;
  diedAt: Milliseconds | undefined;
}

/** How long an instance may take to start, and to stop. */
const PATIENCE_MS = 20_000;

/** The processes of a demo: forked, told when to begin and to stop, and heard. */
export class Fleet {
  readonly #members: Member[];

  /** @param settings what each instance is told; one is forked for each. @param worker the file they run. */
  constructor(settings: readonly object[], listener: FleetListener = {}, worker = workerFile()) {
    // Node's own options of this process (`-e`, a loader) are not meant for them.
    cluster.setupPrimary({ exec: worker, args: [], execArgv: [], silent: false });
    this.#members = settings.map((each, instance) => this.#fork(each, instance, listener));
  }

  get size(): number {
    return this.#members.length;
  }

  /** Resolves once all have a limiter in force. */
  async ready(): Promise<void> {
    await Promise.all(this.#members.map(({ ready }) => withinPatience(ready, 'start')));
  }

  go(at: Milliseconds): void {
    for (let instance = 0; instance < this.size; instance++) this.send(instance, { demo: 'go', at });
  }

  send(instance: number, message: FromPrimary): void {
    const { worker } = this.#member(instance);
    if (worker.isConnected()) worker.send(message, () => {});
  }

  /** Sends a signal to the process, and answers when. */
  signal(instance: number, signal: NodeJS.Signals): Milliseconds {
    const member = this.#member(instance);
    const at = hostNow();
    process.kill(member.worker.process.pid as number, signal);
    if (signal === 'SIGKILL') member.diedAt = at;
    return at;
  }

  /** Requests an instance has made so far, as it last said. */
  offered(instance: number): number {
    return this.#member(instance).offered;
  }

  get alive(): number {
    return this.#members.filter(({ diedAt }) => diedAt === undefined).length;
  }

  /** Stops those that live, and answers what each had to say; nothing from one that was killed. */
  async stop(): Promise<(InstanceReport | undefined)[]> {
    for (const [instance, member] of this.#members.entries()) {
      if (member.diedAt === undefined) this.send(instance, { demo: 'stop' });
    }
    await Promise.all(
      this.#members.map(async ({ worker, gone }) => {
        await withinPatience(gone, 'stop').catch((error: Error) => {
          worker.process.kill('SIGKILL');
          throw error;
        });
      }),
    );
    return this.#members.map(({ report }) => report);
  }

  /** Ends what is left, at once. For when something has gone wrong. */
  kill(): void {
    for (const { worker } of this.#members) if (!worker.isDead()) worker.process.kill('SIGKILL');
  }

  #fork(settings: object, instance: number, listener: FleetListener): Member {
    const worker = cluster.fork({ [SETTINGS_VARIABLE]: JSON.stringify(settings) });
    const gone = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    const ready = new Promise<void>((resolve, reject) => {
      worker.on('message', (message: FromInstance) => {
        if (message?.demo === 'ready') resolve();
      });
      worker.once('exit', (code, signal) => reject(new Error(`Instance ${instance} ended early (${signal ?? code}).`)));
    });
    ready.catch(() => {});
    const member: Member = { worker, ready, gone, offered: 0, report: undefined, diedAt: undefined };
    worker.on('error', () => {});
    worker.on('exit', () => {
      member.diedAt ??= hostNow();
    });
    worker.on('message', (message: FromInstance) => {
      switch (message?.demo) {
        case 'ready':
          return;
        case 'progress':
          member.offered = message.offered;
          return;
        case 'fenced':
          listener.fenced?.(instance, message.version, message.at);
          return;
        case 'trouble':
          listener.trouble?.(instance, message.message);
          return;
        case 'done':
          member.report = message;
          member.offered = message.decisions;
          worker.disconnect();
          return;
        case 'replayed':
          listener.replayed?.(instance, message.requests);
      }
    });
    return member;
  }

  #member(instance: number): Member {
    const member = this.#members[instance];
    if (!member) throw new RangeError(`Expected an instance from 0 to ${this.size - 1}, got ${instance}.`);
    return member;
  }
}

function workerFile(): string {
  return fileURLToPath(new URL('./worker.js', import.meta.url));
}

async function withinPatience<T>(promise: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`Expected all instances to ${what} within ${PATIENCE_MS / 1_000} s.`)),
      PATIENCE_MS,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
