import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from './free-port.js';
import { answers } from './probe.js';
import { requireServerBinary } from './server-binary.js';
import { ServerProcess } from './server-process.js';

export interface NatsServerOptions {
  /** Default: a free one. */
  port?: number;
  /** Default true. False: a server without streams and key-value buckets, as some users run. */
  jetstream?: boolean;
  /** More command line arguments. */
  args?: string[];
}

/** A nats-server of one's own on 127.0.0.1, which a test may freeze, kill and empty. */
export class NatsServer {
  readonly port: number;
  readonly url: string;
  readonly #process: ServerProcess;
  readonly #options: NatsServerOptions;

  static async start(options: NatsServerOptions = {}): Promise<NatsServer> {
    requireServerBinary('nats-server');
    const server = new NatsServer(options.port ?? (await freePort()), await ServerProcess.create('nats'), options);
    try {
      await server.#launch();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private constructor(port: number, process: ServerProcess, options: NatsServerOptions) {
    this.port = port;
    this.url = `nats://127.0.0.1:${port}`;
    this.#process = process;
    this.#options = options;
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Ends the server for good. */
  async stop(): Promise<void> {
    await this.#process.dispose();
  }

  /** Ends the server without a chance to say goodbye. `restart()` brings it back. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.#process.terminate(signal);
  }

  /** Freezes the server: connections stay open, nothing is answered. */
  async pause(): Promise<void> {
    await this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** Same port, new process; streams and buckets are kept unless `keepData: false`. */
  async restart({ keepData = true }: { keepData?: boolean } = {}): Promise<void> {
    await this.#process.terminate();
    if (!keepData) await rm(this.#storeDirectory, { recursive: true, force: true });
    await this.#launch();
  }

  get #storeDirectory(): string {
    return join(this.#process.directory, 'jetstream');
  }

  async #launch(): Promise<void> {
    const { jetstream = true, args = [] } = this.#options;
    await mkdir(this.#storeDirectory, { recursive: true });
    await this.#process.launch({
      binary: requireServerBinary('nats-server'),
      args: [
        ...['-a', '127.0.0.1', '-p', String(this.port)],
        ...(jetstream ? ['-js', '-sd', this.#storeDirectory] : []),
        ...args,
      ],
      // The server speaks first; with JetStream it takes connections only after its streams are back.
      isReady: () => answers(this.port, '', jetstream ? '"jetstream":true' : 'INFO '),
    });
  }
}
