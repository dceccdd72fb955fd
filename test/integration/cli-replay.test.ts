import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NodeRun, runNode } from '../support/run-node.js';

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const ACCESS_LOG = at('demo/access.log');
const LOGINS = at('demo/logins.jsonl');
const PER_CLIENT = at('docs/examples/policies/per-client.jsonc');
const LOGIN_POLICY = at('docs/examples/policies/logins.jsonc');

const replay = (args: readonly string[], input?: string | Uint8Array): Promise<NodeRun> =>
  runNode([at('dist/cli/main.js'), 'replay', ...args], input);

describe('headgate replay', { timeout: 60_000 }, () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headgate-cli-test-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function policyFile(document: object): Promise<string> {
    const file = join(directory, 'policy.json');
    await writeFile(file, JSON.stringify(document));
    return file;
  }

  it('tells what a policy would have done to the shipped access log, plain, in gzip and through a pipe alike', async () => {
    const plain = await replay([ACCESS_LOG, '--policy', PER_CLIENT, '--json']);
    const report = JSON.parse(plain.stdout);
    expect(plain).toMatchObject({ code: 0, stderr: '' });
    expect(report).toMatchObject({ requests: 10_000, malformed: 0, late: 0, keys: 1_753, keysForgotten: 0 });
    expect(report.admitted + report.denied).toBe(10_000);
    expect(report.from).toBe(Date.UTC(2015, 4, 17, 10, 5, 0));

    const zipped = join(directory, 'access.log.gz');
    await writeFile(zipped, gzipSync(await readFile(ACCESS_LOG)));
    const others = [
      await replay([zipped, '--policy', PER_CLIENT, '--json']),
      await replay(['-', '--policy', PER_CLIENT, '--json'], await readFile(zipped)),
      await replay(['-', '--policy', PER_CLIENT, '--json'], await readFile(ACCESS_LOG)),
    ];
    for (const { stdout } of others) expect({ ...JSON.parse(stdout), log: ACCESS_LOG }).toEqual(report);
  });

  it('names a burst, and a rate, that would have denied nobody; and so they do', async () => {
    const ceiling = { rate: 60, per: '1h', burst: 60 };
    const sized = await replay([ACCESS_LOG, '--policy', await policyFile({ name: 'a', ceiling }), '--json']);
    const { smallestBurst, smallestRate } = JSON.parse(sized.stdout).tiers[0].sizing;
    expect(JSON.parse(sized.stdout).denied).toBeGreaterThan(0);
    const enough = [
      { ...ceiling, burst: smallestBurst },
      { ...ceiling, rate: Math.ceil(smallestRate * 3_600 * 1e6) / 1e6 },
    ];
    for (const ceiling of enough) {
      const run = await replay([ACCESS_LOG, '--policy', await policyFile({ name: 'a', ceiling }), '--json']);
      expect(JSON.parse(run.stdout).denied).toBe(0);
    }
  });

  it('limits logins, as the documentation shows it', async () => {
    const run = await replay([LOGINS, '--policy', LOGIN_POLICY, '--time', 't', '--key-field', 'client']);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    const shown = await readFile(at('docs/replay.md'), 'utf8');
    expect(shown).toContain(run.stdout.replace(LOGINS, 'demo/logins.jsonl').trimEnd());
    for (const control of ['\u001b', '\r', '█']) expect(run.stdout).not.toContain(control);
  });

  it('limits networks, paths, users and everybody, by a cost, over instances', async () => {
    const keys = async (...args: string[]): Promise<number> => {
      const run = await replay([ACCESS_LOG, '--policy', PER_CLIENT, '--json', ...args]);
      expect(run.code, run.stderr).toBe(0);
      return JSON.parse(run.stdout).keys;
    };
    expect(await keys('--key', 'prefix', '--prefix4', '16')).toBe(1);
    expect(await keys('--key', 'path')).toBeGreaterThan(500);
    expect(await keys('--key', 'field', '--key-field', 'status')).toBeLessThan(10);
    expect(await keys('--key', 'all', '--instances', '4')).toBe(1);
    const lines = [1, 2, 3].map((n) =>
      JSON.stringify({ at: `2026-01-01T00:00:0${n}+01:00`, user: { id: n % 2 }, units: n }),
    );
    const input = `${lines.join('\n')}\n`;
    const args = ['--time', 'at', '--key-field', 'user.id', '--cost-field', 'units'];
    const run = await replay(
      ['-', '--policy', await policyFile({ name: 'a', local: { rate: 1, burst: 3 } }), '--json', ...args],
      input,
    );
    expect(JSON.parse(run.stdout)).toMatchObject({ requests: 3, keys: 2, denied: 0, offeredTokens: 6 });
  });

  it('puts lines in order, and says which it can’t read, and how many came too late', async () => {
    const line = (second: string): string => `192.0.2.1 - - [17/May/2015:10:${second} +0200] "GET / HTTP/1.1" 200 1\n`;
    const input = `${line('00:05')}${line('00:01')}junk\n${line('09:00')}${line('00:02')}`;
    const run = await replay(['-', '--policy', PER_CLIENT], input);
    expect(run.code).toBe(0);
    expect(run.stdout).toContain('2015-05-17 08:00:01 UTC to 2015-05-17 08:09:00 UTC');
    expect(run.stdout).toContain(
      "1 lines can't be read and are left out, such as\n  line 3: not in common or combined",
    );
    expect(run.stdout).toContain('1 lines were more than 10 s earlier than one before them');
  });

  it('writes a page with a plot that needs nothing but itself', async () => {
    const page = join(directory, 'report.html');
    const policy = await policyFile({ name: 'a', ceiling: { rate: 60, per: '1h', burst: 10 } });
    const run = await replay([ACCESS_LOG, '--policy', policy, '--report', page]);
    expect(run).toMatchObject({ code: 0, stderr: '' });
    const html = await readFile(page, 'utf8');
    expect(html.match(/<polygon /g)).toHaveLength(2);
    expect(html).toContain('Denied most');
    expect(html).not.toMatch(/https?:|<script|<link|@import|url\(/);
  });

  it.each<[string[], string | undefined, string]>([
    [[], undefined, 'Expected one log, got 0.'],
    [['a.log'], undefined, 'Expected --policy FILE.json, got none.'],
    [['-', '--policy', '-'], '{}', 'Expected at most one of LOG and --policy to be standard input, got both.'],
    [['none.log', '--policy', PER_CLIENT], undefined, 'Expected a log that can be read, got "none.log" (ENOENT).'],
    [[tmpdir(), '--policy', PER_CLIENT], undefined, '(EISDIR).'],
    [
      ['-', '--policy', PER_CLIENT, '--key', 'ip'],
      '',
      'Expected --key to be one of address, prefix, path, field, all, got "ip".',
    ],
    [['-', '--policy', PER_CLIENT, '--reorder', 'soon'], '', 'Expected --reorder to be a time up to a day'],
    [['-', '--policy', PER_CLIENT], '', 'got "-", which is empty.'],
    [['-', '--policy', PER_CLIENT], 'junk\njunk\n', '-:1: Expected an access log in common or combined log format'],
    [['-', '--policy', PER_CLIENT], '{"time": 1}\n', 'Expected --key-field with --key field and json lines'],
    [['-', '--policy', PER_CLIENT, '--format', 'json', '--key', 'path'], '', 'Expected --key-field with --key path'],
    [['x', '--policy', ACCESS_LOG], undefined, `${ACCESS_LOG}:1:5: Expected the end of the file, got ".".`],
  ])('says in one line what is wrong with %j, and leaves with 2', async (args, input, message) => {
    const run = await replay(args, input);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain(message);
    expect(run.stderr.trimEnd().split('\n')).toHaveLength(1);
  });

  it('points to the line of a policy that is at fault, and says that a log in gzip ends too early', async () => {
    const file = join(directory, 'bad.json');
    await writeFile(
      file,
      '{\n  "name": "a",\n  "overrides": {\n    "b": { "local": { "rate": 1,\n      "burst": -1 } }\n  },\n  "local": { "rate": 1, "burst": 1 }\n}',
    );
    const bad = await replay(['x', '--policy', file]);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain(`${file}:5:7: Expected \`overrides["b"].local.burst\` to be a positive number`);
    const cut = await replay(['-', '--policy', PER_CLIENT], gzipSync(await readFile(ACCESS_LOG)).subarray(0, 5_000));
    expect(cut).toMatchObject({ code: 2, stdout: '' });
    expect(cut.stderr).toContain('Expected a log that is whole, got "-" (unexpected end of file).');
  });
});
