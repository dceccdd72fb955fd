/** Every code an error of this package can carry. `docs/reference/errors.md` has a section for each. */
export const ERROR_CODES = [
  'HEADGATE_INVALID_OPTION',
  'HEADGATE_INVALID_POLICY',
  'HEADGATE_UNKNOWN_POLICY',
  'HEADGATE_POLICY_CONFLICT',
  'HEADGATE_POLICY_SOURCE',
  'HEADGATE_INVALID_KEY',
  'HEADGATE_INVALID_COST',
  'HEADGATE_COST_ABOVE_BURST',
  'HEADGATE_DENIED',
  'HEADGATE_CEILING',
  'HEADGATE_REDIS_CLIENT',
  'HEADGATE_MISSING_PEER',
  'HEADGATE_CLOSED',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** The base of every error this package throws. `code` is stable; the message is for people. */
export class HeadgateError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** An option of `createLimiter` or of a call is not what was expected. */
export class InvalidOptionError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HEADGATE_INVALID_OPTION', message, options);
  }
}

/** A policy document is not valid. Nothing has changed: the last good policy stays. */
export class InvalidPolicyError extends HeadgateError {
  /** The names of the fields that lead to the fault, for tools that show its line; empty: the document as a whole. */
  readonly path: readonly string[];

  constructor(message: string, options?: ErrorOptions & { readonly path?: readonly string[] }) {
    super('HEADGATE_INVALID_POLICY', message, options);
    this.path = options?.path ?? [];
  }
}

/** The limiter has no policy of that name. */
export class UnknownPolicyError extends HeadgateError {
  constructor(name: string, known: Iterable<string>) {
    const names = [...known].map((known) => `"${known}"`).join(', ');
    super(
      'HEADGATE_UNKNOWN_POLICY',
      `Expected the name of a known policy (${names || 'none yet'}), got ${show(name)}.`,
    );
  }
}

/** A publish lost the race: somebody else has changed this policy since it was read. Read it again and retry. */
export class PolicyConflictError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HEADGATE_POLICY_CONFLICT', message, options);
  }
}

/** The policy source can't do what was asked (no JetStream, not writable, connection lost). */
export class PolicySourceError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HEADGATE_POLICY_SOURCE', message, options);
  }
}

/** A key is not a non-empty string of at most 512 bytes. */
export class InvalidKeyError extends HeadgateError {
  constructor(message: string) {
    super('HEADGATE_INVALID_KEY', message);
  }
}

/** A cost is not a positive, finite number of at most six decimals. */
export class InvalidCostError extends HeadgateError {
  constructor(cost: unknown) {
    super(
      'HEADGATE_INVALID_COST',
      `Expected \`cost\` to be a positive number with at most 6 decimals, got ${show(cost)}.`,
    );
  }
}

/** A cost is above the burst of a tier as constructed, so it could never pass. */
export class CostAboveBurstError extends HeadgateError {
  constructor(cost: number, tier: 'local' | 'ceiling', burst: number) {
    super(
      'HEADGATE_COST_ABOVE_BURST',
      `Expected \`cost\` to be at most the ${tier} burst of ${burst} tokens, got ${cost}: it could never pass.`,
    );
  }
}

/** The ceiling store failed or did not answer in time. Never thrown at callers of a decision: the outage mode answers. */
export class CeilingError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HEADGATE_CEILING', message, options);
  }
}

/** The Redis client that was given can't serve for long, or no more. Never thrown: `onTrouble` is told. */
export class RedisClientError extends HeadgateError {
  constructor(message: string, options?: ErrorOptions) {
    super('HEADGATE_REDIS_CLIENT', message, options);
  }
}

/** A package that an option asks for is not installed. */
export class MissingPeerError extends HeadgateError {
  constructor(peer: string, option: string, options?: ErrorOptions) {
    super(
      'HEADGATE_MISSING_PEER',
      `\`${option}\` as it is given needs the package "${peer}", which is not installed: npm install ${peer}.`,
      options,
    );
  }
}

/** The limiter is closed. */
export class ClosedError extends HeadgateError {
  constructor() {
    super('HEADGATE_CLOSED', 'Expected an open limiter, got one that is closed.');
  }
}

/** A value as an error message shows it: its text where that is short, its type where not. */
export function show(value: unknown): string {
  if (typeof value === 'string')
    return value.length > 64 ? `a string of ${value.length} characters` : JSON.stringify(value);
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return 'a symbol';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return String(value);
}
