import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const built = (file: string): string =>
  JSON.stringify(pathToFileURL(new URL(`../../dist/${file}`, import.meta.url).pathname).href);
const IMPORTS = `
  import cluster from 'node:cluster';
  import { fork } from 'node:child_process';
  import { once } from 'node:events';
  import { createLimiter } from ${built('index.js')};
  import { clusterCeiling, clusterPolicySource, serveCluster } from ${built('cluster/index.js')};
  const policies = [{ name: 'api', ceiling: { rate: 1, burst: 30, per: '1h' } }];
  const limiterHere = () =>
    createLimiter({ ceiling: clusterCeiling(), policySource: clusterPolicySource(), telemetry: false });
  async function allowedOf(limiter, asked) {
    let allowed = 0;
    for (let i = 0; i < asked; i++) if ((await limiter.policy('api').acquire('tenant')).allowed) allowed += 1;
    return allowed;
  }
`;

/** Real processes over real IPC channels. A program prints one line of JSON and must then end by itself. */
describe('headgate/cluster between processes', { timeout: 30_000 }, () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'headgate-cluster-'));
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  async function run(name: string, body: string): Promise<unknown> {
    const file = join(directory, `${name}.mjs`);
    await writeFile(file, IMPORTS + body);
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'], timeout: 25_000 });
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (chunk) => (stdout += chunk));
      child.stderr.on('data', (chunk) => (stderr += chunk));
      child.once('close', (code) =>
        code === 0 ? resolve(JSON.parse(stdout)) : reject(new Error(`${code}: ${stderr}`)),
      );
    });
  }

  it('shares one ceiling among workers, one of which is killed, and lets the primary end', async () => {
    const result = await run(
      'workers',
      `
      if (cluster.isPrimary) {
        const server = serveCluster({ policies });
        const counts = [];
        let dead = 0;
        const workers = [0, 1, 2].map(() => cluster.fork());
        for (const worker of workers) worker.on('message', (message) => {
          if (message.allowed === undefined) return;
          counts.push(message.allowed);
          if (counts.length < 3) return;
          workers[0].process.kill('SIGKILL');
          workers[1].send('leave');
          workers[2].send('leave');
        });
        cluster.on('exit', async () => {
          if (++dead < 3) return;
          await server.close();
          console.log(JSON.stringify({ sum: counts.reduce((a, b) => a + b, 0), counts: counts.length }));
        });
      } else {
        const limiter = await limiterHere();
        process.send({ allowed: await allowedOf(limiter, 20) });
        process.on('message', async (message) => {
          if (message !== 'leave') return;
          await limiter.close();
          cluster.worker.disconnect();
        });
      }
      `,
    );
    expect(result).toEqual({ sum: 30, counts: 3 });
  });

  it('serves a plain forked process, which may end once its limiter is closed', async () => {
    const result = await run(
      'forked',
      `
      if (process.send === undefined) {
        const server = serveCluster({ policies });
        const child = fork(process.argv[1]);
        server.attach(child);
        let allowed;
        child.on('message', (message) => { allowed = message.allowed ?? allowed; });
        // Nothing tells it to: its channel does not keep it alive any more.
        const [code] = await once(child, 'exit');
        await server.close();
        console.log(JSON.stringify({ allowed, code }));
      } else {
        const limiter = await limiterHere();
        process.send({ allowed: await allowedOf(limiter, 40) });
        await limiter.close();
      }
      `,
    );
    expect(result).toEqual({ allowed: 30, code: 0 });
  });

  it('denies as its outage mode says while the primary does not serve, and recovers when it does', async () => {
    const result = await run(
      'late',
      `
      if (cluster.isPrimary) {
        const worker = cluster.fork();
        const seen = [];
        worker.on('message', (message) => {
          if (typeof message.allowed !== 'boolean') return;
          seen.push(message);
          if (message.allowed) worker.disconnect();
          else if (seen.length === 1) serveCluster();
        });
        worker.on('exit', () => {
          console.log(JSON.stringify({ first: seen[0], last: seen.at(-1) }));
          process.exit();
        });
      } else {
        const options = { ceiling: clusterCeiling(), policies, telemetry: false };
        const limiter = await createLimiter(options);
        const ask = async () => {
          const { allowed, reason } = await limiter.policy('api').acquire('tenant');
          process.send({ allowed, reason });
          if (!allowed) setTimeout(ask, 20);
        };
        await ask();
      }
      `,
    );
    expect(result).toMatchObject({ first: { allowed: false, reason: 'degraded' }, last: { allowed: true } });
  });
});
