import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NodeRun, runNode } from '../support/run-node.js';

const built = (file: string): string => fileURLToPath(new URL(`../../dist/demo/${file}`, import.meta.url));
const TIMEOUT = { timeout: 60_000 };

const demo = (...args: string[]): Promise<NodeRun> => runNode([built('main.js'), ...args]);

/** Runs the demo with a part of it replaced: `seams` is the text of an object. */
function demoWith(seams: string, ...args: string[]): Promise<NodeRun> {
  const program = `
    import { main } from ${JSON.stringify(pathToFileURL(built('cli.js')).href)};
    import { judge } from ${JSON.stringify(pathToFileURL(built('verdict.js')).href)};
    import { judgeReplay } from ${JSON.stringify(pathToFileURL(built('replay-verdict.js')).href)};
    process.exitCode = await main(process.argv.slice(1), ${seams});
  `;
  return runNode(['--input-type=module', '-e', program, '--', ...args]);
}

describe('npm run demo', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headgate-demo-test-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('keeps the bound on nothing but Node, says so as JSON and on a page, and leaves with 0', TIMEOUT, async () => {
    const page = join(directory, 'report.html');
    const run = await demo('--instances', '4', '--seconds', '4', '--rate', '400', '--json', '--report', page);
    const verdict = JSON.parse(run.stdout);
    expect(run.code, run.stderr).toBe(0);
    expect(verdict).toMatchObject({ ok: true });
    expect(verdict.windows.map((window: { phase: string }) => window.phase)).toEqual(['before', 'across', 'after']);
    expect(verdict.admitted).toBeGreaterThan(400);
    expect(run.stderr).toContain('policy published: 200 a second, burst 200');
    expect(run.stderr).toContain('instance 3 killed (SIGKILL)');
    // No terminal: no bar, no colours.
    for (const control of ['\u001b', '\r', '█']) expect(run.stderr).not.toContain(control);
    expect(await readFile(page, 'utf8')).toContain('</html>');
  });

  it('leaves with 1 where a window was above the bound', TIMEOUT, async () => {
    // The fleet is judged by a ceiling of half the rate that it really had.
    const strict = '{ judge: (h) => judge({ ...h, terms: { rate: h.terms.rate / 2, burst: 1 } }), judgeReplay }';
    const run = await demoWith(strict, '--instances', '2', '--seconds', '2', '--rate', '200');
    expect(run.code, run.stderr).toBe(1);
    expect(run.stdout).toContain('THE BOUND WAS BROKEN');
  });

  it(
    'replays a log, counts the lines it can’t read, and never gives a client more than its bound',
    TIMEOUT,
    async () => {
      const log = join(directory, 'small.log');
      const line = (client: string, second: number): string =>
        `${client} - - [17/May/2015:10:00:${String(second).padStart(2, '0')} +0000] "GET / HTTP/1.1" 200 1 "-" "-"`;
      const lines = Array.from({ length: 300 }, (_, i) => line(i % 3 ? '10.0.0.1' : `10.0.1.${i}`, Math.floor(i / 5)));
      await writeFile(log, `${[...lines.slice(0, 9), 'not a log line', ...lines.slice(9)].join('\n')}\n`);
      const run = await demo('--replay', log, '--instances', '3', '--speed', '15', '--burst', '200', '--json');
      const verdict = JSON.parse(run.stdout);
      expect(run.code, run.stderr).toBe(0);
      expect(verdict).toMatchObject({ ok: true, requests: 300, unparsed: 1, brokenClients: [], speed: 15 });
      expect(verdict.mostDenied[0].client).toBe('10.0.0.1');
      expect(run.stderr).toContain("1 lines can't be read and are left out, such as");
      expect(run.stderr).toContain('"not a log line"');
    },
  );

  it('leaves with 3 where it could not be run', TIMEOUT, async () => {
    const run = await demo('--instances', '1', '--seconds', '2', '--nats', 'nats://127.0.0.1:1');
    expect(run.code).toBe(3);
    expect(run.stderr).toContain('The demo could not be run: ');
  });

  it('says what is wrong with the command line, shows the usage, and leaves with 2', TIMEOUT, async () => {
    for (const args of [
      ['--instances', 'many'],
      ['--replay', join(directory, 'none.log')],
    ]) {
      const run = await demo(...args);
      expect(run.code).toBe(2);
      expect(run.stderr).toMatch(/^UsageError: Expected --(instances|replay) to be /);
      expect(run.stderr).toContain('Usage: npm run demo');
      expect(run.stdout).toBe('');
    }
    const help = await demo('--help');
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('--report FILE.html');
  });
});
