import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { groundsOf, isAllowed, VERDICT } from '../../../src/limiter/decision.js';
import { limiterOf } from '../../support/limiter-under-test.js';

const PAGE = readFileSync(new URL('../../../docs/reference/decisions.md', import.meta.url), 'utf8');

function rowsOf(heading: string): string[][] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim()),
  );
}

it('docs/reference/decisions.md lists every reason with the tiers that give it, and no other', () => {
  const given = new Map<string, Set<string>>();
  for (const verdict of Object.values(VERDICT)) {
    if (isAllowed(verdict)) continue;
    for (const overflow of [false, true]) {
      const { limitedBy, reason } = groundsOf(verdict, overflow);
      given.set(reason, (given.get(reason) ?? new Set()).add(limitedBy));
    }
  }
  const listed = rowsOf('Reasons').map(([reason, tiers]) => [
    reason?.replaceAll('`', ''),
    new Set([...(tiers ?? '').matchAll(/`(\w+)`/g)].map(([, tier]) => tier as string)),
  ]);
  expect(new Map(listed as [string, Set<string>][])).toEqual(given);
});

it('docs/reference/decisions.md lists every field of a decision, and no other', async () => {
  const { api } = await limiterOf({ local: { rate: 1, burst: 1 } });
  const { api: shadow } = await limiterOf({ mode: 'shadow', local: { rate: 1, burst: 1 } });
  shadow.tryAcquire('k');
  const both = Object.keys(api.decide('k'));
  const denied = Object.keys(api.decide('k')).filter((field) => !both.includes(field));
  const allowed = Object.keys(shadow.decide('k')).filter((field) => !both.includes(field));
  const rows = rowsOf('Fields').slice(0, both.length + denied.length + allowed.length);
  const fields = (kind: string) =>
    rows.filter(([, where]) => where === kind).map(([field]) => field?.replaceAll('`', ''));
  expect(fields('both').sort()).toEqual(both.sort());
  expect(fields('denied').sort()).toEqual(denied.sort());
  expect(fields('allowed').sort()).toEqual(allowed.sort());
});
