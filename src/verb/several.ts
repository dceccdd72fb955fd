import { InvalidOptionError, show } from '../errors.js';
import { type AcquireAllOptions, checkPatience } from '../limiter/acquire-options.js';
import { type Allowed, type Decision, type Denied, isAllowed, type Verdict } from '../limiter/decision.js';
import { ATTEMPT, type Attempt } from '../limiter/judge.js';
import type { KeyState } from '../limiter/key-state.js';
import type { Limiter } from '../limiter/limiter.js';
import type { Teller } from '../limiter/teller.js';
import type { MicroTokens, Milliseconds, Tokens } from '../units.js';
import { look, putBack } from './scout.js';

/** One of several limits that a request must pass together. */
export interface Limit {
  /** Name of a policy. */
  readonly policy: string;
  readonly key: string;
  /** Tokens to take; positive, at most six decimals. Default 1. */
  readonly cost?: Tokens;
}

/** All limits have been charged. */
export interface AllAllowed {
  readonly allowed: true;
  /** One for each limit, in their order. */
  readonly decisions: readonly Allowed[];
}

/** Nothing has been charged anywhere. */
export interface NotAllAllowed {
  readonly allowed: false;
  /** Which limit denied, counted from 0: of several the one that will do so for longest. */
  readonly deniedBy: number;
  /** Its decision. `retryAfterMs` is that of all together: waiting less can't help. */
  readonly denied: Denied;
}

/** The answer to several limits at once. */
export type JointDecision = AllAllowed | NotAllAllowed;

/** What a limit was waited for may be gone when another has been waited for. */
const ROUNDS_A_LIMIT = 2;

/** A limit as it stands at its teller, checked. */
interface Part {
  readonly teller: Teller;
  readonly state: KeyState;
  readonly cost: Tokens;
  readonly micro: MicroTokens;
}

type Outcome =
  | { readonly allowed: true; readonly verdicts: readonly Verdict[] }
  | { readonly allowed: false; readonly first: Refusal; readonly longest: Refusal };

/** A limit that denied. */
interface Refusal {
  readonly index: number;
  readonly verdict: Verdict;
}

/**
 * Takes the tokens of several limits, such as a user's, its tenant's and the whole service's, if all of them have enough,
 * and nothing anywhere otherwise. Never waits; one call runs at a time, so nothing comes between. A limit that shadows
 * lets pass.
 *
 * @throws {UnknownPolicyError} and as `PolicyLimiter.decide`; then nothing has been charged either
 */
export function decideAll(limiter: Limiter, limits: readonly Limit[]): JointDecision {
  const parts = partsOf(limiter, limits);
  return answer(parts, attempt(parts, ATTEMPT.only, undefined));
}

/**
 * The same, waiting where that can help, as `PolicyLimiter.acquire` does: in the queue of the first limit that denies; at
 * each turn there all limits are tried anew. Nothing is charged while it waits.
 *
 * @throws as {@link decideAll}; rejects with the signal's reason where it is aborted first
 */
export async function acquireAll(
  limiter: Limiter,
  limits: readonly Limit[],
  options?: AcquireAllOptions,
): Promise<JointDecision> {
  const { maxWaitMs, signal } = checkPatience('acquireAll', options);
  let deadline: Milliseconds | undefined;
  let turn: number | undefined;
  for (let round = 0; ; round++) {
    signal?.throwIfAborted();
    // Anew each time: a key that nobody asks for is dropped, also while one waits for another.
    const parts = partsOf(limiter, limits);
    const outcome = attempt(parts, maxWaitMs === 0 ? ATTEMPT.only : ATTEMPT.first, turn);
    if (outcome.allowed) return answer(parts, outcome);
    const { first, longest } = outcome;
    const now = (parts[0] as Part).teller.now();
    if (maxWaitMs !== undefined) deadline ??= now + maxWaitMs;
    const part = parts[first.index] as Part;
    const patience = deadline === undefined ? undefined : Math.max(0, deadline - now);
    // Without patience each limit may wait for answers of the store as often as a single acquire does.
    const hopeless =
      patience === undefined
        ? round >= ROUNDS_A_LIMIT * parts.length
        : patience === 0 || waitOf(parts[longest.index] as Part, longest.verdict) > patience;
    if (hopeless) return answer(parts, outcome);
    const waited = await turnOf(part, first.verdict, patience, signal);
    if (waited === undefined) return answer(parts, outcome);
    if (!isAllowed(waited)) return answer(parts, { ...outcome, longest: { index: first.index, verdict: waited } });
    // Its turn has come, and been charged: all together now, or not at all.
    putBack(part.teller.keeper, part.state, waited, part.micro, undefined, part.teller.now());
    turn = first.index;
  }
}

/** @param turn which limit has been waited for: it need not stand behind those who still wait */
function attempt(parts: readonly Part[], kind: Attempt, turn: number | undefined): Outcome {
  const verdicts: Verdict[] = [];
  for (const [index, part] of parts.entries()) {
    const verdict = charge(part, index === turn ? ATTEMPT.again : kind, index === turn);
    verdicts.push(verdict);
    if (isAllowed(verdict) || part.state.terms.mode === 'shadow') continue;
    for (const [i, verdict] of verdicts.entries()) {
      if (isAllowed(verdict)) uncharge(parts[i] as Part, verdict);
    }
    const first = { index, verdict };
    return { allowed: false, first, longest: longestOf(parts, first) };
  }
  return { allowed: true, verdicts };
}

/** Of the limit that denied and those behind it that would, the one that will for longest. */
function longestOf(parts: readonly Part[], first: Refusal): Refusal {
  let found = first;
  let wait = waitOf(parts[first.index] as Part, first.verdict);
  for (const [index, part] of parts.entries()) {
    if (index <= first.index || part.state.terms.mode === 'shadow') continue;
    const looked = look(part.teller, part.state, part.cost, part.micro, part.teller.now());
    if (isAllowed(looked) || waitOf(part, looked) <= wait) continue;
    found = { index, verdict: looked };
    wait = waitOf(part, looked);
  }
  return found;
}

function waitOf({ teller, state, micro }: Part, verdict: Verdict): Milliseconds {
  const ahead = state.waiters?.micro ?? 0;
  return teller.judge.wait(state, verdict, micro, ahead, teller.now()) ?? Number.POSITIVE_INFINITY;
}

/** Charges a part, uncounted; one whose turn has come need not stand behind those who still wait. */
function charge({ teller, state, cost, micro }: Part, kind: Attempt, itsTurn: boolean): Verdict {
  const now = teller.now();
  return itsTurn || state.waiters === undefined
    ? teller.judge.judge(state, cost, micro, now, kind)
    : teller.judge.behind(state, cost, micro, now);
}

/** Takes a charge of this very turn back, and the demand it was counted as: another limit denied. */
function uncharge({ teller, state, micro }: Part, verdict: Verdict): void {
  putBack(teller.keeper, state, verdict, micro, undefined, teller.now());
  if (state.account) state.account.attempted = Math.max(0, state.account.attempted - micro);
}

/** Waits for a part's turn, uncounted, and answers what it brought; `undefined`: that can't help. */
function turnOf(
  { teller, state, cost, micro }: Part,
  verdict: Verdict,
  maxWaitMs: Milliseconds | undefined,
  signal: AbortSignal | undefined,
): Promise<Verdict> | undefined {
  const now = teller.now();
  const newcomer = { cost, micro, maxWaitMs, signal, priority: 0 };
  if (!teller.room.worthwhile(state, verdict, newcomer, now)) return undefined;
  return teller.room.enter(state, newcomer, now, (verdict) => verdict);
}

function partsOf(limiter: Limiter, limits: readonly Limit[]): Part[] {
  if (!Array.isArray(limits) || limits.length === 0) {
    throw new InvalidOptionError(`Expected \`limits\` to be an array of at least one limit, got ${show(limits)}.`);
  }
  return limits.map(({ policy, key, cost = 1 }: Limit) => {
    const { teller, keys } = limiter.policy(policy);
    const micro = teller.micro(key, cost);
    return { teller, state: keys.find(key, teller.now()), cost, micro };
  });
}

/** Counts what was decided where it was decided: once for each limit that was charged, or for the one that denied. */
function answer(parts: readonly Part[], outcome: Outcome): JointDecision {
  if (!outcome.allowed) {
    const { index, verdict } = outcome.longest;
    const part = parts[index] as Part;
    return { allowed: false, deniedBy: index, denied: decided(part, verdict) as Denied };
  }
  const decisions = parts.map((part, i): Decision => decided(part, outcome.verdicts[i] as Verdict));
  return { allowed: true, decisions: decisions as readonly Allowed[] };
}

function decided({ teller, state, cost, micro }: Part, verdict: Verdict): Decision {
  return teller.clerk.decided(state, verdict, cost, micro, state.waiters?.micro ?? 0, teller.now());
}
