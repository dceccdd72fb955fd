import type { PolicyDocument, TierDocument } from '../index.js';
import type { LogReading, ReplayReport, TierReport } from '../replay/index.js';
import { count, percent, type Screen } from '../terminal/screen.js';
import { textTable } from '../terminal/table.js';
import { type Microseconds, type Milliseconds, periodMs } from '../units.js';

/** A replay and what it was made of. */
export interface ReplayOutcome {
  readonly log: string;
  readonly policy: Readonly<PolicyDocument>;
  readonly reading: LogReading;
  readonly report: ReplayReport;
  readonly reorderMs: Milliseconds;
}

/** The report of a replay as lines of text. */
export function showReplay(outcome: ReplayOutcome, screen: Screen): void {
  const { report } = outcome;
  const section = (lines: readonly string[]): void => {
    if (lines.length === 0) return;
    screen.line();
    for (const [index, line] of lines.entries()) screen.line(`  ${index === 0 ? screen.style('dim', line) : line}`);
  };
  screen.line(`${screen.style('bold', `What policy "${report.policy}" would have done to ${outcome.log}`)}`);
  screen.line(spanText(report));
  section(['of all requests', ...textTable(totals(report))]);
  section(textTable([TIER_HEAD, ...report.tiers.map((tier) => tierCells(tier, outcome.policy))]));
  const { mostDenied } = report;
  if (mostDenied.length > 0)
    section(['denied most', ...textTable(mostDenied.map(({ key, denied }) => [key, count(denied)]))]);
  for (const note of notes(outcome)) screen.line(`\n${screen.style('yellow', note)}`);
}

export function spanText({ requests, keys, from = 0, to = 0 }: ReplayReport): string {
  const hours = ((to - from) / 3_600_000_000).toLocaleString('en-US', { maximumFractionDigits: 1 });
  return `${count(requests)} requests of ${count(keys)} keys in ${hours} h, ${moment(from)} to ${moment(to)}`;
}

/** Names, counts and parts of the whole. */
export function totals(report: ReplayReport): string[][] {
  const { requests, admitted, denied, deniedByMode, aboveBurst, offeredTokens, admittedTokens } = report;
  const row = (name: string, value: number, whole: number): string[] => [name, count(value), percent(value / whole)];
  return [
    row('admitted', admitted, requests),
    row('denied', denied, requests),
    ...(deniedByMode > 0 ? [row("  by the policy's mode", deniedByMode, requests)] : []),
    ...(aboveBurst > 0 ? [row('  at a cost above the burst', aboveBurst, requests)] : []),
    ...(offeredTokens === requests ? [] : [row('tokens admitted', admittedTokens, offeredTokens)]),
  ];
}

export const TIER_HEAD = ['tier', 'is', 'denied', 'would deny nobody: this burst', 'or this rate'];

export function tierCells({ tier, algorithm, denied, sizing }: TierReport, policy: PolicyDocument): string[] {
  const document = policy[tier];
  if (!document || !('burst' in document) || !sizing)
    return [tier, document ? otherTier(document, algorithm) : algorithm, count(denied), '–', '–'];
  const { rate, burst, per = '1s' } = document;
  const { smallestBurst, smallestRate, rateIsAbout } = sizing;
  const needed = smallestRate === undefined ? undefined : rateIn(per, smallestRate);
  return [
    tier,
    `${number(rate)} per ${per}, burst ${number(burst)}`,
    count(denied),
    number(smallestBurst),
    needed === undefined ? 'none' : `${rateIsAbout ? 'about ' : ''}${number(needed)} per ${per}`,
  ];
}

function otherTier(document: TierDocument, algorithm: string): string {
  if ('limit' in document) return `${algorithm}, ${number(document.limit)} in ${document.window}`;
  return 'queue' in document ? `${algorithm}, ${number(document.rate)} per ${document.per ?? '1s'}` : algorithm;
}

/** What has to be said of figures that are not all of the truth. */
export function notes({ reading, report, policy, reorderMs }: ReplayOutcome): string[] {
  const { malformed, samples, late } = reading;
  const lines: string[] = [];
  if (malformed > 0) {
    const shown = samples.map(({ line, reason, text }) => `  line ${line}: ${reason}: ${JSON.stringify(text)}`);
    lines.push([`${count(malformed)} lines can't be read and are left out, such as`, ...shown].join('\n'));
  }
  if (late > 0)
    lines.push(
      `${count(late)} lines were more than ${reorderMs / 1_000} s earlier than one before them, and count as later (--reorder).`,
    );
  if (report.keysForgotten > 0)
    lines.push(
      `${count(report.keysForgotten)} keys were forgotten to make room for others: each may have been admitted one burst ` +
        'too much, and the sizes may be too small (--max-keys).',
    );
  if (report.tiers.some(({ sizing }) => sizing && sizing.smallestRate === undefined))
    lines.push('Where no rate would do, more tokens than the burst were asked for at one moment.');
  if (policy.concurrency !== undefined)
    lines.push('The bound on what is in flight is left out: a log does not say how long requests took.');
  if (policy.mode === 'shadow') lines.push('The policy is a shadow: as it is, it would have admitted all of them.');
  if (policy.mode === 'allow')
    lines.push('The mode of the policy is "allow": it denies nobody, whatever its tiers are.');
  return lines;
}

/** Tokens a second as tokens in each `per`, rounded up to what a policy can say. */
function rateIn(per: unknown, perSecond: number): number {
  const exact = (perSecond * (periodMs(per) ?? 1_000)) / 1_000;
  const nearest = Math.round(exact * 1e6) / 1e6;
  // Not lower, but for the last bits of a double.
  return nearest >= exact * (1 - 4 * Number.EPSILON) ? nearest : Math.ceil(exact * 1e6) / 1e6;
}

function number(value: number): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 6 });
}

export function moment(micros: Microseconds): string {
  return `${new Date(micros / 1_000).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
