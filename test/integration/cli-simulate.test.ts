import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NodeRun, runNode } from '../support/run-node.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../docs/examples/scenarios/', import.meta.url));
const TIMEOUT = { timeout: 60_000 };

const headgate = (args: readonly string[], input?: string): Promise<NodeRun> => runNode([MAIN, ...args], input);

/** A few seconds of a small fleet, with or without a bound that is broken. */
const scenario = (more: object = {}): string =>
  JSON.stringify({
    name: 'small <fleet>',
    duration: '4s',
    policies: [{ name: 'api', ceiling: { rate: 50, burst: 20 }, outage: { mode: 'allow' } }],
    fleet: [{ instances: 3, traffic: { rate: 40 } }],
    ...more,
  });

describe('headgate', TIMEOUT, () => {
  it('shows its commands, its version, and the options of a command', async () => {
    const help = await headgate(['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('simulate');
    expect(await headgate(['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' });
    const simulate = await headgate(['simulate', '--help']);
    expect(simulate).toMatchObject({ code: 0, stderr: '' });
    expect(simulate.stdout).toContain('--report FILE.html');
  });

  it.each([
    [[], 'Expected a command (simulate'],
    [['simulat'], 'got "simulat"'],
    [['simulate'], 'Expected one scenario file, got 0.'],
    [['simulate', 'a', 'b'], 'Expected one scenario file, got 2.'],
    [['simulate', '--sed', '1', 'a'], "Unknown option '--sed'"],
    [['simulate', '-', '--seeds', '2', '--report', 'a.html'], 'Expected --report for one seed'],
    [['simulate', '--seed', '1.5', 'a'], 'Expected --seed to be a whole number, got "1.5".'],
    [['simulate', 'none.json'], 'Expected a file that can be read, got "none.json" (ENOENT).'],
    [['simulate', '-', '--report', '/none/of/these.html'], 'Expected --report to be a file that can be written'],
  ])('says in one line what is wrong with %j, and leaves with 2', async (args, message) => {
    const run = await headgate(args);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain(message);
    expect(run.stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});

describe('headgate simulate', TIMEOUT, () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headgate-cli-test-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('shows how a fleet did: the bound, the shares, the calls, and how long it took to converge', async () => {
    const run = await headgate(['simulate', '-'], scenario());
    expect(run).toMatchObject({ code: 0, stderr: '' });
    for (const word of ['utilisation', 'fairness', 'calls per 1,000 decisions', 'stranded', 'after start, at 0 s'])
      expect(run.stdout).toContain(word);
    expect(run.stdout).toContain('The bound held');
    // No terminal: no bar, no colours.
    for (const control of ['\u001b', '\r', '█']) expect(run.stdout + run.stderr).not.toContain(control);
  });

  it('leaves with 1 where a window was over its bound', async () => {
    const events = [{ at: '1s', kind: 'store-down', for: '3s' }];
    const run = await headgate(['simulate', '-'], scenario({ events }));
    expect(run.code).toBe(1);
    expect(run.stdout).toContain('THE BOUND WAS BROKEN');
  });

  it('prints the report as JSON, the same for the same seed, and writes it as a page', async () => {
    const page = join(directory, 'report.html');
    const run = await headgate(['simulate', '-', '--json', '--seed', '7', '--report', page], scenario());
    const report = JSON.parse(run.stdout);
    expect(report).toMatchObject({ seed: 7, windowsOver: 0, durationMs: 4_000 });
    expect(report.store.callsPerDecision).toBeGreaterThan(0);
    expect((await headgate(['simulate', '-', '--json', '--seed', '7'], scenario())).stdout).toBe(run.stdout);
    expect((await headgate(['simulate', '-', '--json', '--seed', '8'], scenario())).stdout).not.toBe(run.stdout);
    const html = await readFile(page, 'utf8');
    expect(html).toContain('</html>');
    expect(html.match(/<svg /g)).toHaveLength(3);
    expect(html).toContain('small &lt;fleet&gt;');
    // It needs nothing but itself.
    expect(html).not.toMatch(/https?:|<script|<link|@import|url\(/);
  });

  it('runs several seeds, a line for each, and leaves with 1 where one of them broke the bound', async () => {
    const run = await headgate(['simulate', '-', '--seeds', '3', '--seed', '5'], scenario());
    expect(run).toMatchObject({ code: 0, stderr: '' });
    expect(run.stdout).toMatch(/^ {2}5 .*\n {2}6 .*\n {2}7 /m);
    expect(run.stdout).toContain('The bound held under every seed.');
    const reports = await headgate(['simulate', '-', '--seeds', '2', '--json'], scenario());
    expect(JSON.parse(reports.stdout)).toMatchObject([{ seed: 1 }, { seed: 2 }]);
    const events = [{ at: '1s', kind: 'store-down', for: '3s' }];
    const broken = await headgate(['simulate', '-', '--seeds', '2'], scenario({ events }));
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain('THE BOUND WAS BROKEN under 2 of them, such as 1.');
  });

  it.each([
    ['{\n  "duration": "1s",,\n}', 'standard input:2:20: Expected the name of a field in double quotes, got ",".'],
    ['{\n  "duration": "soon"\n}', 'standard input:2:3: Expected `duration` to be a time such as'],
    [
      '{\n  "duration": "1s",\n  "policies": [\n    { "name": "a",\n      "local": { "rate": 0, "burst": 1 } }] }',
      'standard input:5:18: Expected `policies[0]` to be a policy, got one that is not: Expected `local.rate`',
    ],
    [
      scenario({ fleet: [{ instances: 1, traffic: { rate: 1 } }, { instances: 1 }] }),
      'standard input:1:174: Expected `fleet[1].traffic` to be an object, got undefined.',
    ],
    [
      scenario({ fleets: 1 }).replace('"fleets"', '\n"fleets"'),
      'standard input:2:1: Expected a scenario to be an object',
    ],
  ])('points to the line and column where a scenario is wrong: %#', async (text, message) => {
    const run = await headgate(['simulate', '-'], text);
    expect(run).toMatchObject({ code: 2, stdout: '' });
    expect(run.stderr).toContain(message);
  });

  it.each(readdirSync(EXAMPLES))('keeps the bound in the example %s', async (file) => {
    const run = await headgate(['simulate', join(EXAMPLES, file)]);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toContain('The bound held');
  });
});
