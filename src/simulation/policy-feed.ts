import { PolicySourceError } from '../errors.js';
import type { PolicyDocument } from '../policy/policy.js';
import type { PolicyListener, PolicySource } from '../policy/policy-source.js';
import type { Milliseconds } from '../units.js';
import { type EventQueue, type Handler, once } from './event-queue.js';
import type { InstanceClock } from './instance-clock.js';
import type { Link } from './network.js';
import type { Dice } from './random.js';

/**
 * The policies as published, and who watches them: each instance hears of a change after a delay of its own. What
 * instances were given when they were made has not been published, and is no news to them.
 */
export class PolicyFeed {
  readonly #queue: EventQueue;
  readonly #dice: Dice;
  readonly #delayMs: Milliseconds;
  readonly #given: ReadonlyMap<string, PolicyDocument>;
  readonly #stored = new Map<string, PolicyDocument>();
  readonly #watchers = new Set<Watcher>();

  constructor(queue: EventQueue, dice: Dice, delayMs: Milliseconds, policies: readonly PolicyDocument[]) {
    this.#queue = queue;
    this.#dice = dice;
    this.#delayMs = delayMs;
    this.#given = new Map(policies.map((policy) => [policy.name, policy]));
  }

  /** Stores a newer version, and tells everybody. */
  publish(document: PolicyDocument): void {
    const { version: before = 0 } = this.#stored.get(document.name) ?? this.#given.get(document.name) ?? {};
    const version = before + 1;
    const published = { ...document, version };
    this.#stored.set(document.name, published);
    for (const watcher of this.#watchers) {
      this.#deliver(
        watcher,
        once(() => watcher.listener.update({ name: document.name, document: published, via: 'watch' })),
      );
    }
  }

  /** The feed as one instance sees it. */
  source(link: Link, clock: InstanceClock): PolicySource {
    const stored = this.#stored;
    const watchers = this.#watchers;
    let watcher: Watcher | undefined;
    return {
      async watch(listener) {
        watcher = { listener, link, clock };
        watchers.add(watcher);
        for (const document of stored.values()) listener.update({ name: document.name, document, via: 'snapshot' });
      },
      list: () =>
        new Promise((resolve) => {
          if (watcher)
            this.#deliver(
              watcher,
              once(() => resolve([...stored.values()])),
            );
        }),
      async publish() {
        throw new PolicySourceError('Expected a scenario to publish by its `events`, got a call of `publish`.');
      },
      async close() {
        if (watcher) watchers.delete(watcher);
      },
    };
  }

  /** What an instance that is cut off misses, it hears when it is back: watching again delivers the newest state. */
  #deliver({ link, clock }: Watcher, message: Handler): void {
    const delay = this.#delayMs * (0.5 + this.#dice.roll());
    this.#queue.push(Math.max(this.#queue.now, link.cutUntil) + delay, {
      quiet: false,
      fire(now) {
        const when = clock.when(now);
        return when === now ? message.fire(now) : when;
      },
    });
  }
}

interface Watcher {
  readonly listener: PolicyListener;
  readonly link: Link;
  readonly clock: InstanceClock;
}
