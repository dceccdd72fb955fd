import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Launch {
  binary: string;
  args: string[];
  environment?: Record<string, string>;
  /** Resolves to true once the server answers; asked again and again until then. */
  isReady: () => Promise<boolean>;
}

const READY_WITHIN_MS = 10_000;
const STOP_WITHIN_MS = 5000;

/**
 * Reads pids, one a line (an empty line: none now). When its input ends it kills the last one and removes the directory.
 * The input ends however the test process ends, by SIGKILL too, when no exit handler of ours would run.
 */
const GUARD = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -CONT "$pid"; kill -KILL "$pid"; fi 2>/dev/null
rm -rf -- "$1"
`;

/** One server program and its temporary directory. May be started, killed, frozen and started again. */
export class ServerProcess {
  readonly directory: string;
  readonly #guard: ChildProcess;
  #child: ChildProcess | undefined;
  #output = '';

  static async create(label: string): Promise<ServerProcess> {
    return new ServerProcess(await mkdtemp(join(tmpdir(), `headgate-${label}-`)));
  }

  private constructor(directory: string) {
    this.directory = directory;
    // In a session of its own: Ctrl-C in the terminal must reach the tests, not the one who cleans up after them.
    this.#guard = spawn('/bin/sh', ['-c', GUARD, 'sh', directory], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    this.#guard.unref();
    (this.#guard.stdin as Socket).unref();
    this.#guard.stdin?.on('error', () => {});
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  get pid(): number {
    const pid = this.#child?.pid;
    if (pid === undefined) throw new Error('The server is not running');
    return pid;
  }

  async launch({ binary, args, environment, isReady }: Launch): Promise<void> {
    if (this.#child !== undefined) throw new Error('The server is already running');
    this.#output = '';
    const child = spawn(binary, args, {
      env: { ...process.env, ...environment },
      cwd: this.directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    child.stdout.on('data', (chunk: Buffer) => this.#keepOutput(chunk));
    child.stderr.on('data', (chunk: Buffer) => this.#keepOutput(chunk));
    child.once('exit', () => this.#forget(child));
    child.once('error', (error) => {
      this.#output += error.message;
      this.#forget(child);
    });
    this.#tellGuard(String(child.pid ?? ''));
    await this.#untilReady(child, isReady);
  }

  /** Ends the server and waits until it is gone. Its directory stays. */
  async terminate(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const gone = once(child, 'exit');
    const tooLong = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
    // A frozen process would only note SIGTERM and act on it once it runs again.
    child.kill('SIGCONT');
    child.kill(signal);
    await gone;
    clearTimeout(tooLong);
  }

  /** Ends the server and removes its directory. Nothing is left to clean up. */
  async dispose(): Promise<void> {
    await this.terminate();
    await rm(this.directory, { recursive: true, force: true });
    this.#guard.stdin?.end();
  }

  /** Freezes the server. Resolves once every thread stands still: the signal alone takes a moment to reach them all. */
  async pause(): Promise<void> {
    process.kill(this.pid, 'SIGSTOP');
    while (!(await isFrozen(this.pid))) await sleep(1);
  }

  resume(): void {
    process.kill(this.pid, 'SIGCONT');
  }

  async #untilReady(child: ChildProcess, isReady: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + READY_WITHIN_MS;
    while (this.#child === child) {
      if (await isReady()) return;
      if (performance.now() > deadline) {
        await this.terminate('SIGKILL');
        throw new Error(`Not ready within ${READY_WITHIN_MS} ms:\n${this.#output}`);
      }
      await sleep(5);
    }
    throw new Error(`The server ended before it was ready:\n${this.#output}`);
  }

  #forget(child: ChildProcess): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    this.#tellGuard('');
  }

  #tellGuard(line: string): void {
    if (this.#guard.stdin?.writable) this.#guard.stdin.write(`${line}\n`);
  }

  #keepOutput(chunk: Buffer): void {
    this.#output = (this.#output + chunk.toString()).slice(-4000);
  }
}

/** Whether no thread of a process can run. Only Linux tells; elsewhere the signal is taken at its word. */
async function isFrozen(pid: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    const status = await readFile(`/proc/${pid}/task/${thread}/stat`, 'latin1');
    // "pid (name) state …"; a name may contain spaces and brackets.
    if (!status.slice(status.lastIndexOf(')')).startsWith(') T')) return false;
  }
  return true;
}
