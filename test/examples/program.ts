import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { onTestFinished } from 'vitest';
import { type NodeRun, runNode } from '../support/run-node.js';

/** A program of the documentation, running in a process of its own until the test ends. It runs what is built. */
export class Program {
  /** What it has written so far, to either output. */
  output = '';
  readonly #child: ChildProcess;

  private constructor(file: string, environment: Record<string, string>) {
    this.#child = spawn(process.execPath, [file], {
      env: { ...process.env, PORT: '0', ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.output += chunk;
      });
    }
  }

  /** Starts a server, and answers once it has told its address. */
  static async serve(file: string, environment: Record<string, string> = {}): Promise<Program & { url: string }> {
    const program = new Program(file, environment);
    onTestFinished(() => program.stop());
    return Object.assign(program, { url: await program.#address() });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  async #address(): Promise<string> {
    const ended = once(this.#child, 'exit').then(([code]) => {
      throw new Error(`The program ended with ${code} before it told its address:\n${this.output}`);
    });
    ended.catch(() => {});
    for (;;) {
      const address = /http:\/\/\S+:\d+/.exec(this.output);
      if (address) return address[0];
      await Promise.race([once(this.#child.stdout as NodeJS.ReadableStream, 'data'), ended]);
    }
  }
}

/** Runs a program of the documentation, with its arguments, to its end. */
export function outputOf(args: readonly string[], environment: Record<string, string> = {}): Promise<NodeRun> {
  return runNode(args, '', environment);
}
