import type { MarkCall, MarkFeed, MarkReply } from '../ceiling/mark-store.js';
import type { PaceCall, PaceReply } from '../ceiling/pace-store.js';
import type { SeatCall, SeatReply } from '../ceiling/seat-store.js';
import type { LeaseCall, LeaseReply, PolicyDocument, PolicyUpdate } from '../index.js';

/**
 * What travels between a primary and its workers, as plain data: safe for both serializations of Node's IPC channel.
 * Every message carries `headgate: 1`, so that an application's own messages on the channel pass by unharmed, and those
 * of another version of this protocol too.
 */
export const PROTOCOL = 1;

/** What a worker asks; each answer carries the `id` of its question. */
export type Question =
  | { readonly kind: 'lease'; readonly calls: readonly LeaseCall[] }
  | { readonly kind: 'pace'; readonly calls: readonly PaceCall[] }
  | { readonly kind: 'hold'; readonly calls: readonly SeatCall[] }
  | { readonly kind: 'mark'; readonly call: MarkCall }
  | { readonly kind: 'feed'; readonly era: string; readonly seq: number; readonly reading: boolean }
  | { readonly kind: 'heartbeat'; readonly group: string; readonly holder: string }
  | { readonly kind: 'watch' }
  | { readonly kind: 'list' }
  | {
      readonly kind: 'publish';
      readonly document: PolicyDocument;
      readonly expected: number;
      readonly trace?: Readonly<Record<string, string>>;
    };

/** What each question is answered with. */
export interface Answers {
  readonly lease: readonly LeaseReply[];
  readonly pace: readonly PaceReply[];
  readonly hold: readonly SeatReply[];
  readonly mark: MarkReply;
  readonly feed: MarkFeed;
  readonly heartbeat: number;
  /** The present state; changes follow as `policy` messages until the worker goes. */
  readonly watch: readonly PolicyUpdate[];
  readonly list: readonly PolicyDocument[];
  readonly publish: null;
}

/** An error in flight. */
export interface WireError {
  readonly name: string;
  readonly message: string;
}

/** `hello` asks a primary to say whether it serves. */
export type FromWorker = (
  | { readonly kind: 'hello' }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question }
) & { readonly headgate: typeof PROTOCOL };

export type FromPrimary = (
  | { readonly kind: 'serving' }
  | { readonly kind: 'closed' }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answers[Question['kind']] }
  | { readonly kind: 'failure'; readonly id: number; readonly error: WireError }
  | { readonly kind: 'policy'; readonly update: PolicyUpdate }
) & { readonly headgate: typeof PROTOCOL };

/** Whether a message that came over the channel is one of ours. */
export function isOurs(message: unknown): message is { readonly headgate: typeof PROTOCOL; readonly kind: string } {
  return typeof message === 'object' && message !== null && 'headgate' in message && message.headgate === PROTOCOL;
}
