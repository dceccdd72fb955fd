import type { Account } from '../lease/account.js';
import type { KeyState } from './key-state.js';

/** What is kept of a key besides its numbers: no more than is needed. */
export type Held = string | Account | KeyState;

export function keyOf(held: Held): string {
  return typeof held === 'string' ? held : held.key;
}

/** What must be kept of a state whose numbers decide: its account, if that is about something. */
export function restOf({ key, account }: KeyState): Held {
  return account === undefined || account.resting ? key : account;
}
