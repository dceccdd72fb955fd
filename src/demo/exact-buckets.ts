import type { Milliseconds, Tokens } from '../index.js';
import type { CeilingTerms } from './window-bound.js';

interface Bucket {
  tokens: Tokens;
  at: Milliseconds;
}

/**
 * What a replay is measured against: one exact token bucket for each client and one for all, which every request asks
 * in turn, in no time. Both give a token, or neither does.
 */
export class ExactBuckets {
  readonly #clientTerms: CeilingTerms;
  readonly #globalTerms: CeilingTerms;
  readonly #clients = new Map<string, Bucket>();
  readonly #global: Bucket;

  constructor(clientTerms: CeilingTerms, globalTerms: CeilingTerms) {
    this.#clientTerms = clientTerms;
    this.#globalTerms = globalTerms;
    this.#global = { tokens: globalTerms.burst, at: Number.NEGATIVE_INFINITY };
  }

  /** Decides a request that comes at `at`; times must not go back. */
  admit(client: string, at: Milliseconds): boolean {
    const bucket = this.#clients.get(client) ?? { tokens: this.#clientTerms.burst, at };
    this.#clients.set(client, bucket);
    refill(bucket, this.#clientTerms, at);
    refill(this.#global, this.#globalTerms, at);
    if (bucket.tokens < 1 || this.#global.tokens < 1) return false;
    bucket.tokens -= 1;
    this.#global.tokens -= 1;
    return true;
  }
}

function refill(bucket: Bucket, { rate, burst }: CeilingTerms, at: Milliseconds): void {
  if (bucket.at !== Number.NEGATIVE_INFINITY) {
    bucket.tokens = Math.min(burst, bucket.tokens + ((at - bucket.at) * rate) / 1_000);
  }
  bucket.at = at;
}
