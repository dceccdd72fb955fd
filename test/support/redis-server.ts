import { existsSync, readdirSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { answers } from './probe.js';
import { requireServerBinary } from './server-binary.js';
import { ServerProcess } from './server-process.js';

export interface RedisServerOptions {
  /** Default: a free one. */
  port?: number;
  /** Makes `shiftClock()` work, at about a third of the throughput. Needs libfaketime: see `canFakeTime()`. */
  fakeTime?: boolean;
  /** Keeps every write over a kill. Default false: a killed server comes back empty. */
  appendonly?: boolean;
  /** More command line arguments, e.g. `['--maxmemory', '10mb']`. */
  args?: string[];
}

/** A redis-server of one's own on 127.0.0.1, which a test may freeze, kill, empty and set to another time. */
export class RedisServer {
  readonly port: number;
  readonly url: string;
  readonly #process: ServerProcess;
  readonly #options: RedisServerOptions;
  #clockShiftMs = 0;

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    requireServerBinary('redis-server');
    const server = new RedisServer(options.port ?? (await freePort()), await ServerProcess.create('redis'), options);
    try {
      await server.#launch();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  /** Whether `fakeTime` works on this machine; tests that need it skip themselves otherwise. */
  static canFakeTime(): boolean {
    return findFakeTimeLibraries() !== undefined;
  }

  private constructor(port: number, process: ServerProcess, options: RedisServerOptions) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
    this.#process = process;
    this.#options = options;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** How far the server's clock is from the real one, in ms. */
  get clockShiftMs(): number {
    return this.#clockShiftMs;
  }

  /** Ends the server for good. */
  async stop(): Promise<void> {
    await this.#process.dispose();
  }

  /** Ends the server without a chance to say goodbye. `restart()` brings it back. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#process.terminate(signal);
  }

  /** Freezes the server: connections stay open, nothing is answered. What arrives meanwhile still runs on `resume()`. */
  async pause(): Promise<void> {
    await this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /**
   * Same port, new process. With `keepData: true` (the default) a running server saves its data first, and one that was
   * killed has what `appendonly` kept; with `keepData: false` it comes back empty.
   */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    if (this.#process.isRunning) {
      if (keepData && !this.#options.appendonly) await this.#save();
      await this.#process.terminate();
    }
    if (!keepData) await rm(this.#dataDirectory, { recursive: true, force: true });
    await this.#launch();
  }

  /** Moves the server's clock by `ms` from where it is now, backwards when negative, while the server runs. */
  async shiftClock(ms: number): Promise<void> {
    if (!this.#options.fakeTime) throw new Error('shiftClock() needs RedisServer.start({ fakeTime: true })');
    this.#clockShiftMs += ms;
    await this.#writeClock();
  }

  get #dataDirectory(): string {
    return join(this.#process.directory, 'data');
  }

  get #clockFile(): string {
    return join(this.#process.directory, 'clock');
  }

  async #launch(): Promise<void> {
    await mkdir(this.#dataDirectory, { recursive: true });
    const { appendonly = false, fakeTime = false, args = [] } = this.#options;
    const settings = {
      port: String(this.port),
      bind: '127.0.0.1',
      save: '',
      appendonly: appendonly ? 'yes' : 'no',
      dir: this.#dataDirectory,
    };
    await this.#process.launch({
      binary: requireServerBinary('redis-server'),
      args: [...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]), ...args],
      environment: fakeTime ? await this.#fakeTimeEnvironment() : {},
      isReady: () => answers(this.port, 'PING\r\n', '+PONG'),
    });
  }

  async #save(): Promise<void> {
    if (!(await answers(this.port, 'SAVE\r\n', '+OK', 5000))) throw new Error('redis-server did not save its data');
  }

  async #fakeTimeEnvironment(): Promise<Record<string, string>> {
    const libraries = findFakeTimeLibraries();
    if (libraries === undefined) throw new Error('fakeTime needs the Debian package libfaketime');
    await this.#writeClock();
    return {
      LD_PRELOAD: libraries,
      FAKETIME_TIMESTAMP_FILE: this.#clockFile,
      FAKETIME_NO_CACHE: '1',
      // With a faked monotonic clock, Redis timers stand still after a jump back.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  async #writeClock(): Promise<void> {
    const seconds = (this.#clockShiftMs / 1000).toFixed(6);
    const offset = this.#clockShiftMs < 0 ? seconds : `+${seconds}`;
    // The server reads the file at any moment: rename, so that it never finds it half written.
    await writeFile(`${this.#clockFile}.new`, `${offset}\n`);
    await rename(`${this.#clockFile}.new`, this.#clockFile);
  }
}

/**
 * For LD_PRELOAD. libc is named behind libfaketime so that malloc is libc's: with the jemalloc that redis-server is
 * linked to, libfaketime waits for itself while both are being loaded, and the server never starts.
 */
function findFakeTimeLibraries(): string | undefined {
  if (process.platform !== 'linux' || !existsSync('/usr/lib')) return undefined;
  for (const triplet of readdirSync('/usr/lib')) {
    const fakeTime = `/usr/lib/${triplet}/faketime/libfaketimeMT.so.1`;
    const libc = `/lib/${triplet}/libc.so.6`;
    if (existsSync(fakeTime) && existsSync(libc)) return `${fakeTime} ${libc}`;
  }
  return undefined;
}
