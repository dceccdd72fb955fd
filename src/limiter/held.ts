import type { Account } from '../lease/account.js';
import type { KeyState } from './key-state.js';

/** What is kept of a key besides its numbers: no more than is needed. */
export type Held = string | Account | KeyState;

export function keyOf(held: Held): string {
  return typeof held === 'string' ? held : held.key;
}

export function accountOf(held: Held | undefined): Account | undefined {
  return typeof held === 'object' ? held.account : undefined;
}
