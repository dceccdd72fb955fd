import { InvalidOptionError, show } from '../errors.js';
import type { KeyHandle, Limiter } from '../index.js';
import { systemTime, type Time } from '../time.js';
import type { Milliseconds, Tokens } from '../units.js';
import { pause } from '../verb/pause.js';
import { type FieldOf, pauseAskedFor } from './upstream-answer.js';

/** A request that is about to be sent. */
export interface OutboundRequest {
  readonly url: URL;
  readonly method: string;
}

/** How requests to others are kept under their limits. */
export interface OutboundOptions {
  /** The policy that a request waits for, by name or chosen for it; `undefined` sends it without a limit. */
  readonly policy: string | ((request: OutboundRequest) => string | undefined);
  /** Whose limit it is. Default: the origin, such as `https://api.example.org`. */
  readonly key?: (request: OutboundRequest) => string;
  /** Tokens a request takes. Default 1. */
  readonly cost?: Tokens | ((request: OutboundRequest) => Tokens);
  /** How long a request may wait before it is sent; one that can't be sent in time is answered at once. Default 30,000. */
  readonly maxWaitMs?: Milliseconds;
  /** Whether to leave an upstream alone as long as its Retry-After and RateLimit fields say. Default `true`. */
  readonly heedUpstream?: boolean;
  /** The longest that an upstream is left alone on its word. Default 60,000. */
  readonly mostPauseMs?: Milliseconds;
}

/** Every option there is. `docs/outbound.md` has a row for each. */
export const OUTBOUND_OPTIONS = [
  'policy',
  'key',
  'cost',
  'maxWaitMs',
  'heedUpstream',
  'mostPauseMs',
] as const satisfies readonly (keyof OutboundOptions)[];

/** Whether a request may be sent now; where not, when it could be. */
export type Leave =
  | {
      readonly granted: true;
      /** To be told what the upstream answered. */
      readonly answered: (status: number, field: FieldOf) => void;
    }
  | { readonly granted: false; readonly policy: string; readonly retryAfterMs: Milliseconds | undefined };

/** Holds requests back until their policy has tokens for them and their upstream takes them. */
export class OutboundGate {
  readonly #limiter: Limiter;
  readonly #options: OutboundOptions;
  readonly #time: Time;

  /** @throws {InvalidOptionError} {@link UnknownPolicyError} */
  constructor(limiter: Limiter, options: OutboundOptions, time: Time = systemTime) {
    checkOutboundOptions(options);
    if (typeof options.policy === 'string') limiter.policy(options.policy);
    this.#limiter = limiter;
    this.#options = options;
    this.#time = time;
  }

  /** Waits until `request` may be sent. Rejects with the signal's reason where it is aborted first. */
  async leave(request: OutboundRequest, signal?: AbortSignal): Promise<Leave> {
    const { policy: choice, key: keyOf, cost: given = 1, maxWaitMs = 30_000 } = this.#options;
    const name = typeof choice === 'string' ? choice : choice(request);
    if (name === undefined) return { granted: true, answered: () => {} };
    const policy = this.#limiter.policy(name);
    const key = keyOf?.(request) ?? request.url.origin;
    const cost = typeof given === 'function' ? given(request) : given;
    const decision = await policy.acquire(key, { cost, maxWaitMs, ...(signal && { signal }) });
    if (!decision.allowed) return { granted: false, policy: name, retryAfterMs: decision.retryAfterMs };
    return { granted: true, answered: (status, field) => this.#answered(policy.key(key), status, field) };
  }

  /** The whole fleet leaves an upstream alone that has asked for it. */
  #answered(handle: KeyHandle, status: number, field: FieldOf): void {
    const { heedUpstream = true, mostPauseMs = 60_000 } = this.#options;
    if (!heedUpstream) return;
    const ms = Math.min(mostPauseMs, pauseAskedFor(status, field, this.#time.wallNow()));
    // An answer that comes when the limiter is closed pauses nobody any more.
    if (ms > 0) pause(handle, ms).catch(() => {});
  }
}

function checkOutboundOptions(options: OutboundOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(`Expected options such as { policy: 'upstream' }, got ${show(options)}.`);
  }
  const unknown = Object.keys(options).find((name) => !(OUTBOUND_OPTIONS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new InvalidOptionError(`Expected an option (${OUTBOUND_OPTIONS.join(', ')}), got ${show(unknown)}.`);
  }
  const { policy, key, cost, heedUpstream } = options;
  if (typeof policy !== 'string' && typeof policy !== 'function') {
    throw new InvalidOptionError(`Expected \`policy\` to be a name or a function, got ${show(policy)}.`);
  }
  if (key !== undefined && typeof key !== 'function') {
    throw new InvalidOptionError(`Expected \`key\` to be a function, got ${show(key)}.`);
  }
  if (cost !== undefined && typeof cost !== 'function' && !(typeof cost === 'number' && cost > 0)) {
    throw new InvalidOptionError(`Expected \`cost\` to be a positive number or a function, got ${show(cost)}.`);
  }
  if (heedUpstream !== undefined && typeof heedUpstream !== 'boolean') {
    throw new InvalidOptionError(`Expected \`heedUpstream\` to be true or false, got ${show(heedUpstream)}.`);
  }
  for (const name of ['maxWaitMs', 'mostPauseMs'] as const) {
    const value = options[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw new InvalidOptionError(`Expected \`${name}\` to be a number of ms, 0 or more, got ${show(value)}.`);
    }
  }
}
