import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';

const LINK = /\]\(([^)#\s]+)(?:#[^)]*)?\)/g;

/** Links in Markdown to files that are not there. */
function brokenLinks(file: string, text: string): string[] {
  return [...text.matchAll(LINK)]
    .map(([, target]) => target as string)
    .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(normalize(join(dirname(file), target))));
}

it('every link in the documentation leads to a file', () => {
  const files = ['README.md', 'CHANGELOG.md', ...markdownUnder('docs')];
  expect(files.length).toBeGreaterThan(10);
  expect(
    files.flatMap((file) => brokenLinks(file, readFileSync(file, 'utf8')).map((link) => `${file}: ${link}`)),
  ).toEqual([]);
  expect(brokenLinks('README.md', '[a](docs/design.md#x) [b](https://example.org) [c](docs/none.md)')).toEqual([
    'docs/none.md',
  ]);
});

function markdownUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}
