import { createServer, type Server, Socket } from 'node:net';
import { freePort } from './free-port.js';

/** The way bytes travel through the proxy. */
export type Direction = 'toServer' | 'toClient';

export interface TcpProxyOptions {
  /** Port of the server behind the proxy, on 127.0.0.1. */
  targetPort: number;
  /** Port that clients connect to. Default: a free one. */
  port?: number;
  /** One-way delay of every chunk, in ms. Default 0. */
  latencyMs?: number;
  /** Up to this much more, drawn anew for every chunk; order is kept all the same. Default 0. */
  jitterMs?: number;
  /** Source of the jitter, for tests that have a seed. */
  random?: () => number;
}

/**
 * A TCP proxy that breaks the network on command.
 *
 * It never drops bytes of a connection that lives on: TCP would not either, and a client that misses one reply takes
 * each later one for the answer to the wrong command. Bytes are *held*, and then passed on by `heal()` or lost together
 * with their connection by `cut()`.
 */
export class TcpProxy {
  readonly port: number;
  latencyMs: number;
  jitterMs: number;
  #targetPort: number;
  readonly #random: () => number;
  #listener: Server | undefined;
  #hangsNewConnections = false;
  readonly #held = new Set<Direction>();
  readonly #links = new Set<Link>();

  static async start(options: TcpProxyOptions): Promise<TcpProxy> {
    const proxy = new TcpProxy(options.port ?? (await freePort()), options);
    await proxy.#listen();
    return proxy;
  }

  private constructor(
    port: number,
    { targetPort, latencyMs = 0, jitterMs = 0, random = Math.random }: TcpProxyOptions,
  ) {
    this.port = port;
    this.latencyMs = latencyMs;
    this.jitterMs = jitterMs;
    this.#targetPort = targetPort;
    this.#random = random;
  }

  /** Connections that are open now, those left hanging included. */
  get connectionCount(): number {
    return this.#links.size;
  }

  /** Bytes that wait in the proxy, held or on their delayed way. */
  heldBytes(direction: Direction): number {
    let bytes = 0;
    for (const link of this.#links) bytes += link.pipe(direction).waitingBytes;
    return bytes;
  }

  /** From now on nothing passes in `direction`, on old and new connections; without one, in both. */
  hold(direction?: Direction): void {
    for (const held of direction === undefined ? BOTH : [direction]) this.#held.add(held);
  }

  /** Ends every open connection with RST. What was held or still on its way is lost. */
  cut(): void {
    for (const link of this.#links) link.reset();
  }

  /** New connections get ECONNREFUSED; open ones stay. */
  async refuseConnections(): Promise<void> {
    this.#hangsNewConnections = false;
    this.#listener?.close();
    this.#listener = undefined;
  }

  /** New connections open, but nobody answers on them; what they say is held. Open ones stay. */
  async hangConnections(): Promise<void> {
    this.#hangsNewConnections = true;
    await this.#listen();
  }

  /** Everything works again: held bytes go on, hanging connections reach the server, new ones are welcome. */
  async heal(): Promise<void> {
    this.#held.clear();
    this.#hangsNewConnections = false;
    for (const link of this.#links) link.connect(this.#targetPort);
    for (const link of this.#links) for (const direction of BOTH) link.pipe(direction).flush();
    await this.#listen();
  }

  /** New connections go to another server, as after a failover; open ones stay with theirs. */
  retarget(targetPort: number): void {
    this.#targetPort = targetPort;
  }

  async stop(): Promise<void> {
    await this.refuseConnections();
    this.cut();
  }

  async #listen(): Promise<void> {
    if (this.#listener !== undefined) return;
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
    this.#listener = listener;
    await new Promise<void>((resolve, reject) => {
      listener.once('error', reject);
      listener.listen(this.port, '127.0.0.1', resolve);
    });
  }

  #accept(client: Socket): void {
    const link = new Link(client, {
      isHeld: (direction) => this.#held.has(direction),
      delayMs: () => this.latencyMs + this.#random() * this.jitterMs,
      onClosed: () => this.#links.delete(link),
    });
    this.#links.add(link);
    if (!this.#hangsNewConnections) link.connect(this.#targetPort);
  }
}

const BOTH: readonly Direction[] = ['toServer', 'toClient'];

interface LinkRules {
  isHeld: (direction: Direction) => boolean;
  delayMs: () => number;
  onClosed: () => void;
}

/** One client connection and its connection to the server. */
class Link {
  readonly #client: Socket;
  readonly #server = new Socket({ allowHalfOpen: true });
  readonly #pipes: Record<Direction, Pipe>;
  #isConnecting = false;

  constructor(client: Socket, rules: LinkRules) {
    this.#client = client;
    this.#server.setNoDelay(true);
    this.#pipes = {
      toServer: new Pipe(client, this.#server, () => rules.isHeld('toServer') || !this.#isConnecting, rules.delayMs),
      toClient: new Pipe(this.#server, client, () => rules.isHeld('toClient'), rules.delayMs),
    };
    let open = 2;
    for (const socket of [client, this.#server]) {
      socket.once('close', () => {
        open -= 1;
        if (open === 0) rules.onClosed();
      });
    }
  }

  pipe(direction: Direction): Pipe {
    return this.#pipes[direction];
  }

  connect(port: number): void {
    if (this.#isConnecting || this.#server.destroyed) return;
    this.#isConnecting = true;
    this.#server.connect(port, '127.0.0.1');
  }

  reset(): void {
    for (const direction of BOTH) this.#pipes[direction].clear();
    this.#client.resetAndDestroy();
    // A socket that never connected has nothing to reset.
    if (this.#isConnecting) this.#server.resetAndDestroy();
    else this.#server.destroy();
  }
}

/** What travels: bytes, an orderly end, or a broken connection. All three wait their turn, so holding hides them alike. */
type Item = { dueAtMs: number } & ({ kind: 'bytes'; chunk: Buffer } | { kind: 'end' } | { kind: 'reset' });

/** One direction of one link: a queue in which everything waits until it is due and nobody holds it. */
class Pipe {
  readonly #target: Socket;
  readonly #isHeld: () => boolean;
  readonly #delayMs: () => number;
  #queue: Item[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(source: Socket, target: Socket, isHeld: () => boolean, delayMs: () => number) {
    this.#target = target;
    this.#isHeld = isHeld;
    this.#delayMs = delayMs;
    source.on('data', (chunk: Buffer) => this.#push({ kind: 'bytes', chunk, dueAtMs: this.#dueAtMs() }));
    source.once('end', () => this.#push({ kind: 'end', dueAtMs: this.#dueAtMs() }));
    source.once('error', () => this.#push({ kind: 'reset', dueAtMs: this.#dueAtMs() }));
  }

  get waitingBytes(): number {
    return this.#queue.reduce((bytes, item) => bytes + (item.kind === 'bytes' ? item.chunk.length : 0), 0);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue = [];
  }

  /** Passes on all that is due and plans the next look. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#isHeld()) {
      const item = this.#queue[0];
      if (item === undefined) return;
      const waitMs = item.dueAtMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.flush(), waitMs);
        return;
      }
      this.#queue.shift();
      this.#deliver(item);
    }
  }

  #push(item: Item): void {
    this.#queue.push(item);
    this.flush();
  }

  /** Never before the item in front: jitter must not reorder a byte stream. */
  #dueAtMs(): number {
    const inFront = this.#queue.at(-1)?.dueAtMs ?? 0;
    return Math.max(inFront, performance.now() + this.#delayMs());
  }

  #deliver(item: Item): void {
    if (this.#target.destroyed) return;
    if (item.kind === 'bytes') this.#target.write(item.chunk);
    else if (item.kind === 'end') this.#target.end();
    else this.#target.resetAndDestroy();
  }
}
