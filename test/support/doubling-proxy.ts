import { connect, createServer, type Server, type Socket } from 'node:net';
import { freePort } from './free-port.js';

export interface DoublingProxyOptions {
  /** Port of the server behind the proxy, on 127.0.0.1. */
  targetPort: number;
  /** How much later the second copy goes, in ms; asked for each chunk. Order is kept. */
  delayMs: () => number;
}

/**
 * A TCP proxy that has everything done twice: all that a client says also goes to the server on a second connection, some
 * time later, as when something on the way sends a request again. What the server says to that one is lost.
 */
export class DoublingProxy {
  readonly port: number;
  readonly #options: DoublingProxyOptions;
  readonly #sockets = new Set<Socket>();
  readonly #timers = new Set<NodeJS.Timeout>();
  #listener: Server | undefined;
  /** Chunks that have gone a second time. */
  doubled = 0;

  static async start(options: DoublingProxyOptions): Promise<DoublingProxy> {
    const proxy = new DoublingProxy(await freePort(), options);
    await proxy.#listen();
    return proxy;
  }

  private constructor(port: number, options: DoublingProxyOptions) {
    this.port = port;
    this.#options = options;
  }

  async stop(): Promise<void> {
    this.#listener?.close();
    for (const timer of this.#timers) clearTimeout(timer);
    for (const socket of this.#sockets) socket.destroy();
  }

  async #listen(): Promise<void> {
    const listener = createServer({ noDelay: true }, (client) => this.#accept(client));
    this.#listener = listener;
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(this.port, '127.0.0.1', resolve);
    });
  }

  #accept(client: Socket): void {
    const first = connect({ port: this.#options.targetPort, host: '127.0.0.1', noDelay: true });
    const second = connect({ port: this.#options.targetPort, host: '127.0.0.1', noDelay: true });
    for (const socket of [client, first, second]) {
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => this.#sockets.delete(socket));
    }
    second.resume();
    first.pipe(client);
    client.once('close', () => first.destroy());
    let inFront = 0;
    client.on('data', (chunk: Buffer) => {
      first.write(chunk);
      inFront = Math.max(inFront, performance.now() + this.#options.delayMs());
      this.#later(inFront - performance.now(), () => {
        this.doubled += 1;
        second.write(chunk);
      });
    });
  }

  #later(delayMs: number, task: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      task();
    }, delayMs);
    this.#timers.add(timer);
  }
}
