import {
  CeilingError,
  InvalidPolicyError,
  PolicyConflictError,
  PolicySourceError,
  type PolicyUpdate,
} from '../index.js';
import { type Channel, post } from './channel.js';
import { type Answers, type FromPrimary, isOurs, PROTOCOL, type Question, type WireError } from './messages.js';

/** Told by a link. */
export interface LinkListener {
  /** The primary has begun to serve, or has begun anew. */
  serving(): void;
  policy(update: PolicyUpdate): void;
  /** The primary serves no more, or is gone. */
  lost(): void;
}

interface Pending {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
}

/** A worker's connection to the primary that serves it. All stores and sources of a channel share one. */
export class WorkerLink {
  readonly #channel: Channel;
  readonly #listeners = new Set<LinkListener>();
  readonly #pending = new Map<number, Pending>();
  readonly #onMessage = (message: unknown): void => this.#receive(message);
  readonly #onDisconnect = (): void => this.#lose('The channel to the primary is closed.');
  #nextId = 1;
  #serving = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Whether the primary has said that it serves. */
  get serving(): boolean {
    return this.#serving && this.#channel.connected;
  }

  /** Begins to listen; the answer ends it. While nobody listens, this channel does not keep the process alive. */
  join(listener: LinkListener): () => void {
    if (this.#listeners.size === 0) {
      this.#channel.on('message', this.#onMessage);
      this.#channel.on('disconnect', this.#onDisconnect);
      post(this.#channel, { headgate: PROTOCOL, kind: 'hello' });
    }
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      this.#channel.off('message', this.#onMessage);
      this.#channel.off('disconnect', this.#onDisconnect);
      this.#serving = false;
      this.#rejectAll('The connection to the primary was closed.');
    };
  }

  /** Asks the primary. Rejects where it does not serve, refuses, or goes away first. */
  ask<Asked extends Question>(question: Asked): Promise<Answers[Asked['kind']]> {
    if (!this.serving) return Promise.reject(new CeilingError('The primary of this cluster does not serve.'));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      if (post(this.#channel, { headgate: PROTOCOL, kind: 'ask', id, question })) return;
      this.#pending.delete(id);
      reject(new CeilingError('The channel to the primary is closed.'));
    });
  }

  #receive(message: unknown): void {
    if (!isOurs(message)) return;
    const news = message as FromPrimary;
    switch (news.kind) {
      case 'serving':
        // The answer to a hello may come beside the news that serving has begun.
        if (this.#serving) return;
        this.#serving = true;
        for (const listener of this.#listeners) listener.serving();
        return;
      case 'closed':
        this.#lose('The primary of this cluster does not serve any more.');
        return;
      case 'policy':
        for (const listener of this.#listeners) listener.policy(news.update);
        return;
      case 'answer':
        this.#take(news.id)?.resolve(news.answer as never);
        return;
      case 'failure':
        this.#take(news.id)?.reject(revive(news.error));
        return;
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #lose(reason: string): void {
    this.#rejectAll(reason);
    if (!this.#serving) return;
    this.#serving = false;
    for (const listener of this.#listeners) listener.lost();
  }

  #rejectAll(reason: string): void {
    for (const { reject } of this.#pending.values()) reject(new CeilingError(reason));
    this.#pending.clear();
  }
}

const links = new WeakMap<Channel, WorkerLink>();

/** The one link of a channel. */
export function linkOf(channel: Channel): WorkerLink {
  let link = links.get(channel);
  if (!link) {
    link = new WorkerLink(channel);
    links.set(channel, link);
  }
  return link;
}

const ERRORS: Readonly<Record<string, new (message: string) => Error>> = {
  InvalidPolicyError,
  PolicyConflictError,
  PolicySourceError,
  CeilingError,
};

function revive({ name, message }: WireError): Error {
  return new (ERRORS[name] ?? CeilingError)(message);
}
