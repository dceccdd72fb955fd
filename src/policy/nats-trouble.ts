import { HeadgateError, PolicySourceError } from '../errors.js';

/** JetStream's codes for a write whose expected revision is not the last one (the second: the server can't name it). */
const WRONG_LAST_SEQUENCE: readonly unknown[] = [10071, 10164];
/** JetStream's codes for being switched off: for the account, for the server. */
const JETSTREAM_OFF: readonly unknown[] = [10039, 10076];

/** The connection that the limiter was given is closed, and nobody but its owner could open another. */
export class GivenConnectionClosed extends Error {}

/** What went wrong with NATS, in our words. */
export interface NatsTrouble {
  readonly error: HeadgateError;
  /** Trying again can't help: somebody has to change the set-up. */
  readonly hopeless: boolean;
}

/** The two client generations tell the same failures in different ways; this is the only place that knows them. */
export function explain(cause: unknown, doing: string, bucket: string): NatsTrouble {
  if (cause instanceof HeadgateError) return { error: cause, hopeless: true };
  const hopeless = (message: string): NatsTrouble => ({
    error: new PolicySourceError(message, { cause }),
    hopeless: true,
  });
  if (cause instanceof GivenConnectionClosed) {
    return hopeless(
      'Expected an open NATS connection, got one that is closed: known policies stay and change no more.',
    );
  }
  if (isJetStreamOff(cause)) {
    const message =
      'Expected a NATS server with JetStream, got one without: the policies live in a key-value bucket there. ' +
      'Start it with -js, or leave `nats` out.';
    // A cluster that elects a leader, or a server that has run out of disk, says the same.
    return { error: new PolicySourceError(message, { cause }), hopeless: false };
  }
  if (isPermissionViolation(cause)) {
    return hopeless(
      `Expected the permission to ${doing} in the NATS bucket "${bucket}", got: ${messageOf(cause)}. ` +
        'docs/policies.md lists what is needed.',
    );
  }
  if (isAuthorizationViolation(cause)) {
    return hopeless(`Expected NATS to accept the credentials it was given, got: ${messageOf(cause)}.`);
  }
  return {
    error: new PolicySourceError(`Could not ${doing} over NATS: ${messageOf(cause)}.`, { cause }),
    hopeless: false,
  };
}

/** Whether a write failed because somebody else has written since. */
export function isWrongLastSequence(error: unknown): boolean {
  return codesOf(error).some((code) => WRONG_LAST_SEQUENCE.includes(code));
}

function isJetStreamOff(error: unknown): boolean {
  // 2.x shows a request that nobody takes as the status 503, 3.x by the error's name.
  return (
    codesOf(error).some((code) => code === '503' || JETSTREAM_OFF.includes(code)) || named(error, 'JetStreamNotEnabled')
  );
}

function isPermissionViolation(error: unknown): boolean {
  return codesOf(error).includes('PERMISSIONS_VIOLATION') || named(error, 'PermissionViolationError');
}

function isAuthorizationViolation(error: unknown): boolean {
  const codes: readonly unknown[] = ['AUTHORIZATION_VIOLATION', 'AUTHENTICATION_EXPIRED', 'AUTHENTICATION_TIMEOUT'];
  return (
    codesOf(error).some((code) => codes.includes(code)) ||
    named(error, 'AuthorizationError') ||
    named(error, 'UserAuthenticationExpiredError')
  );
}

/** 2.x keeps JetStream's own code in `api_error`; 3.x in `code`. */
function codesOf(error: unknown): readonly unknown[] {
  const { code, api_error } = Object(error) as { code?: unknown; api_error?: { err_code?: unknown } };
  return [code, api_error?.err_code];
}

/** Whether this error or a cause of it has that name; 3.x wraps what a request met. */
function named(error: unknown, name: string): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) if (at.name === name) return true;
  return false;
}

function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  // 2.x quotes the server's words.
  return message.replace(/^'(.*)'$/, '$1');
}
