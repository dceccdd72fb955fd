import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const folder = new URL('./limiter/', import.meta.url);

it('every case that test/cases.md says a limiter test shows is named by that test', () => {
  const page = readFileSync(new URL('../cases.md', import.meta.url), 'utf8');
  const tests = new Map(
    readdirSync(folder).map((name) => [name.replace(/\.test\.ts$/, ''), readFileSync(new URL(name, folder), 'utf8')]),
  );
  let looked = 0;
  for (const [, cases, shown] of page.matchAll(/^\| (C[^|]+) \| ([^|]+) \|$/gm)) {
    const files = [...(shown ?? '').matchAll(/`limiter\/([\w-]+)`/g)].map(([, name]) => name as string);
    for (const file of files) expect(tests.has(file), file).toBe(true);
    if (files.length === 0 || !/^`limiter/.test(shown ?? '')) continue;
    for (const [number] of (cases ?? '').matchAll(/C\d+/g)) {
      looked += 1;
      expect(
        files.some((file) => tests.get(file)?.includes(number)),
        `${number} in ${files.join(', ')}`,
      ).toBe(true);
    }
  }
  expect(looked).toBeGreaterThan(40);
});

it('every case that test/cases.md says a test shows is named by some test', () => {
  const page = readFileSync(new URL('../cases.md', import.meta.url), 'utf8');
  const folder = new URL('../', import.meta.url);
  const tests = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  const shown = [...page.matchAll(/^\| (C[^|]+) \| `[^|]+\|$/gm)].flatMap(([, cases]) => cases?.match(/C\d+/g) ?? []);
  expect(shown.length).toBeGreaterThan(80);
  expect(shown.filter((number) => !new RegExp(`\\b${number}\\b`).test(tests))).toEqual([]);
});
