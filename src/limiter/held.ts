import { Account } from '../lease/account.js';
import { KeyState } from './key-state.js';

/** What is kept of a key besides its numbers: no more than is needed. */
export type Held = string | Account | KeyState;

export function keyOf(held: Held): string {
  return typeof held === 'string' ? held : held.key;
}

export function accountOf(held: Held | undefined): Account | undefined {
  if (held instanceof Account) return held;
  return held instanceof KeyState ? held.account : undefined;
}
