import { InvalidPolicyError } from '../errors.js';
import type { PolicyDocument } from './policy.js';

/** The largest policy message, in bytes; half of what a NATS server takes by default. */
export const MAX_POLICY_BYTES = 512 * 1024;

/**
 * A policy as it travels and is stored: JSON in UTF-8, the same bytes on every road.
 *
 * @throws InvalidPolicyError where that is more than 512 KiB.
 */
export function policyToMessage(document: PolicyDocument): Uint8Array {
  const message = new TextEncoder().encode(JSON.stringify(document));
  checkSize(message, ` (policy "${document.name}")`);
  return message;
}

/**
 * The document in a policy message. Only decoded: `parsePolicy` says whether it is a policy.
 *
 * @throws InvalidPolicyError where the message is more than 512 KiB, not UTF-8 or not JSON (then with its `cause`).
 */
export function policyFromMessage(message: Uint8Array): unknown {
  checkSize(message, '');
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(message));
  } catch (cause) {
    throw new InvalidPolicyError(`Expected a policy message to be JSON in UTF-8, got ${message.length} other bytes.`, {
      cause,
    });
  }
}

function checkSize(message: Uint8Array, about: string): void {
  if (message.length <= MAX_POLICY_BYTES) return;
  throw new InvalidPolicyError(
    `Expected a policy message of at most ${MAX_POLICY_BYTES} bytes, got ${message.length}.${about}`,
  );
}
