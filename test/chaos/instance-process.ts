import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Milliseconds, PolicyDocument } from '../../src/index.js';
import type { Answer, InstanceOptions, InstanceReport, Load, Order } from './instance/messages.js';

/** A process that was let go has this long to end by itself. */
const EXIT_WITHIN_MS: Milliseconds = 10_000;

/** One process of a fleet, as a test sees it. */
export class InstanceProcess {
  readonly #child: ChildProcess;
  readonly #exit: Promise<void>;
  readonly #pending = new Map<number, { resolve: (answer: Answer) => void; reject: (error: Error) => void }>();
  #number = 0;
  #output = '';

  constructor(program: string) {
    // Not Vitest's own flags: they slow a process down, and are for the tests.
    const child = fork(program, { execArgv: [], stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output = (this.#output + chunk.toString()).slice(-4_000);
      });
    }
    child.on('message', (answer: Answer) => {
      const pending = this.#pending.get(answer.number);
      this.#pending.delete(answer.number);
      if ('error' in answer) pending?.reject(new Error(answer.error));
      else pending?.resolve(answer);
    });
    this.#exit = once(child, 'exit').then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error(`The instance has ended: ${this.#output}`));
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Makes its limiters, and lets its callers begin. */
  start(options: InstanceOptions): Promise<InstanceReport> {
    return this.#report({ order: 'start', options });
  }

  /** Closes its limiters; it can then be started anew, or let go. */
  close(): Promise<InstanceReport> {
    return this.#report({ order: 'close' });
  }

  report(): Promise<InstanceReport> {
    return this.#report({ order: 'report' });
  }

  setLoad(load: Load): Promise<InstanceReport> {
    return this.#report({ order: 'load', load });
  }

  /** Keeps the event loop from turning; resolves when it turns again. */
  async block(forMs: Milliseconds): Promise<void> {
    await this.#report({ order: 'block', forMs });
  }

  async publish(document: PolicyDocument): Promise<number> {
    const answer = await this.#ask({ order: 'publish', document });
    return 'version' in answer ? answer.version : 0;
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (!this.isRunning) return;
    // A stopped process dies as well, but its end is only seen once it is continued.
    this.resume();
    this.#child.kill('SIGKILL');
    await this.#exit;
  }

  /** Lets it end by itself, as nothing keeps it any more. Answers what was wrong with how it did. */
  async letGo(): Promise<string | undefined> {
    if (!this.isRunning) return `had ended already: ${this.#output}`;
    this.#child.disconnect();
    const late = new AbortController();
    await Promise.race([this.#exit, sleep(EXIT_WITHIN_MS, undefined, { signal: late.signal })]);
    late.abort();
    if (this.isRunning) {
      await this.kill();
      return 'did not end by itself';
    }
    return this.#child.exitCode === 0 ? undefined : `ended with ${this.#child.exitCode}: ${this.#output}`;
  }

  async #report(order: Order): Promise<InstanceReport> {
    const answer = await this.#ask(order);
    if (!('report' in answer)) throw new Error('The instance answered something else');
    return answer.report;
  }

  #ask(order: Order): Promise<Answer> {
    this.#number += 1;
    const number = this.#number;
    return new Promise((resolve, reject) => {
      this.#pending.set(number, { resolve, reject });
      this.#child.send({ ...order, number }, (error) => error && reject(error));
    });
  }
}
