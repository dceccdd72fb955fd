import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';

/** What a figure depends on besides the code: the machine, what else it does, and the versions of all that takes part. */
export function describeMachine() {
  const [cpu] = os.cpus();
  return {
    cpu: cpu?.model ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGiB: Math.round(os.totalmem() / 2 ** 30),
    system: `${os.type()} ${os.release()}`,
    node: process.version,
    v8: process.versions.v8,
    redis: redisVersion(),
    load: os.loadavg().map((load) => load.toFixed(2)),
    commit: commit(),
    when: new Date().toISOString(),
  };
}

/** The versions of installed packages, by name. */
export function versionsOf(names) {
  const { resolve } = createRequire(import.meta.url);
  return Object.fromEntries(names.map((name) => [name, versionOf(name, resolve)]));
}

function versionOf(name, resolve) {
  // Not every package lets its package.json be asked for: look for it above its entry.
  for (
    let folder = new URL('./', `file://${resolve(name)}`);
    folder.pathname !== '/';
    folder = new URL('../', folder)
  ) {
    try {
      const about = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
      if (about.name === name) return about.version;
    } catch {}
  }
  return 'unknown';
}

function redisVersion() {
  return tell(process.env.HEADGATE_TEST_REDIS ?? 'redis-server', ['--version'])?.match(/v=(\S+)/)?.[1] ?? 'none';
}

function commit() {
  return tell('git', ['describe', '--always', '--dirty'])?.trim() ?? 'unknown';
}

function tell(program, args) {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return undefined;
  }
}
