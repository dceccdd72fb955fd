import { InvalidOptionError, show } from '../errors.js';
import { checkResponseOptions, type LimitResponse, type ResponseOptions, type Ruling } from '../http/index.js';
import type { Milliseconds, Tokens } from '../units.js';
import type { SetupWarning } from './setup-warnings.js';

type Awaitable<T> = T | Promise<T>;

/** A policy's name, or a function that chooses it; `undefined` leaves the request to the other policies. */
export type PolicyChoice<Request> = string | ((request: Request) => Awaitable<string | undefined>);

/** How a request that passed was answered. */
export interface ResponseOutcome {
  /** The status of the response; of gRPC, its code. */
  readonly status: number;
  /** Whether all of it was sent. */
  readonly finished: boolean;
}

/** One policy among several, with a key and a cost of its own where it needs them. */
export interface PolicyRule<Request> {
  readonly policy: PolicyChoice<Request>;
  /** Default: the `key` of the options around it. */
  readonly key?: (request: Request) => Awaitable<string>;
  /** Default: the `cost` of the options around it. */
  readonly cost?: Tokens | ((request: Request) => Awaitable<Tokens>);
}

/** What is limited, and how. The options that all adaptors have. */
export interface GateOptions<Request> extends ResponseOptions {
  /** The policy that a request is limited by, or several of them: it passes only if all let it. */
  readonly policy: PolicyChoice<Request> | readonly (string | PolicyRule<Request>)[];
  /** Who is limited. Default: the client's address, as the framework's trusted proxies give it. */
  readonly key?: (request: Request) => Awaitable<string>;
  /** Tokens a request takes. Default 1. */
  readonly cost?: Tokens | ((request: Request) => Awaitable<Tokens>);
  /** Requests that are not limited at all, such as those of a health check. Default: none. */
  readonly skip?: (request: Request) => Awaitable<boolean>;
  /** How long a request may wait for tokens. Default: no longer than the ceiling store takes to answer. */
  readonly maxWaitMs?: Milliseconds;
  /** Decides and counts, but neither denies nor tells the client. Default `false`. */
  readonly shadow?: boolean;
  /**
   * Gives requests that were denied for one key one after the other a time to come back at, as far apart as the limit earns
   * what they cost: Retry-After is later by up to this much, never earlier. Default 0: the same time for all.
   */
  readonly spreadMs?: Milliseconds;
  /** Leading bits of an IPv6 address that make one client, 1 to 128; of the default key only. Default 64. */
  readonly ipv6Prefix?: number;
  /**
   * What a request has really cost, known by its response: 0 or more tokens. What was taken too much comes back, what was
   * too little is charged on top. Asked once for each policy. Default: `cost`, whatever becomes of it.
   */
  readonly settle?: (response: ResponseOutcome, request: Request, ruling: Ruling) => Tokens;
  /** Changes what a denied request is answered with: its status, headers or body. */
  readonly response?: (response: LimitResponse, denied: DeniedRequest<Request>) => Awaitable<LimitResponse>;
  /** Told of mistakes in the setup, each kind once. Default: a process warning. */
  readonly onWarning?: (warning: SetupWarning) => void;
}

/** Every option that a gate knows. `docs/http.md` has a row for each. */
export const GATE_OPTIONS = [
  'policy',
  'key',
  'cost',
  'skip',
  'maxWaitMs',
  'shadow',
  'headers',
  'partition',
  'spreadMs',
  'jitterMs',
  'maxRetryAfterSeconds',
  'ipv6Prefix',
  'settle',
  'response',
  'onWarning',
] as const satisfies readonly (keyof GateOptions<unknown>)[];

/** A request that was denied, and why. */
export interface DeniedRequest<Request> {
  readonly request: Request;
  readonly rulings: readonly Ruling[];
}

/** Options checked, with a rule for each policy. */
export interface CheckedGateOptions<Request> extends Omit<GateOptions<Request>, 'policy'> {
  readonly rules: readonly PolicyRule<Request>[];
}

/** @throws {InvalidOptionError} */
export function checkGateOptions<Request>(options: GateOptions<Request>): CheckedGateOptions<Request> {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(`Expected options such as { policy: 'api' }, got ${show(options)}.`);
  }
  const unknown = Object.keys(options).find((name) => !(GATE_OPTIONS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new InvalidOptionError(`Expected an option (${GATE_OPTIONS.join(', ')}), got ${show(unknown)}.`);
  }
  const { policy, ...rest } = options;
  checkResponseOptions(rest);
  for (const name of ['key', 'skip', 'settle', 'response', 'onWarning'] as const) expectFunction(rest[name], name);
  if (rest.cost !== undefined) checkCost(rest.cost);
  const { shadow, ipv6Prefix } = rest;
  if (shadow !== undefined && typeof shadow !== 'boolean') {
    throw new InvalidOptionError(`Expected \`shadow\` to be true or false, got ${show(shadow)}.`);
  }
  if (ipv6Prefix !== undefined && !(Number.isInteger(ipv6Prefix) && ipv6Prefix >= 1 && ipv6Prefix <= 128)) {
    throw new InvalidOptionError(
      `Expected \`ipv6Prefix\` to be a whole number from 1 to 128, got ${show(ipv6Prefix)}.`,
    );
  }
  for (const name of ['maxWaitMs', 'spreadMs'] as const) {
    const value = rest[name];
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw new InvalidOptionError(`Expected \`${name}\` to be a number of ms, 0 or more, got ${show(value)}.`);
    }
  }
  return { ...rest, rules: rulesOf(policy, rest) };
}

function rulesOf<Request>(
  policy: GateOptions<Request>['policy'],
  { key, cost }: Pick<PolicyRule<Request>, 'key' | 'cost'>,
): readonly PolicyRule<Request>[] {
  const given: readonly (PolicyChoice<Request> | PolicyRule<Request>)[] = Array.isArray(policy)
    ? policy
    : [policy as PolicyChoice<Request>];
  if (given.length === 0) throw new InvalidOptionError('Expected `policy` to name at least one policy, got none.');
  return given.map((one) => {
    const rule = typeof one === 'object' && one !== null ? one : { policy: one };
    if (typeof rule.policy !== 'string' && typeof rule.policy !== 'function') {
      throw new InvalidOptionError(
        `Expected \`policy\` to be a name, a function, or an array of names and rules, got ${show(rule.policy)}.`,
      );
    }
    expectFunction(rule.key, 'key');
    if (rule.cost !== undefined) checkCost(rule.cost);
    return { ...(key && { key }), ...(cost !== undefined && { cost }), ...rule };
  });
}

function checkCost(cost: unknown): void {
  if (typeof cost !== 'function' && !(typeof cost === 'number' && cost > 0 && Number.isFinite(cost))) {
    throw new InvalidOptionError(`Expected \`cost\` to be a positive number or a function, got ${show(cost)}.`);
  }
}

function expectFunction(value: unknown, name: string): void {
  if (value !== undefined && typeof value !== 'function') {
    throw new InvalidOptionError(`Expected \`${name}\` to be a function, got ${show(value)}.`);
  }
}
