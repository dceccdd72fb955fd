// Installs what the tests run against or with: two servers, and the model checker with its compiler: `npm run servers`.
// Does nothing when all are there.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const wanted = [
  { binary: 'redis-server', variable: 'HEADGATE_TEST_REDIS', debian: ['redis-server'], brew: 'redis' },
  { binary: 'nats-server', variable: 'HEADGATE_TEST_NATS', debian: ['nats-server'], brew: 'nats-server' },
  { binary: 'spin', debian: ['spin'], brew: 'spin' },
  // Debian only recommends the C library's headers to who installs gcc.
  { binary: 'gcc', debian: ['gcc', 'libc6-dev'], brew: 'gcc' },
];

// Debian puts nats-server into /usr/sbin, which is not on an ordinary user's PATH.
const directories = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/bin'];

function isInstalled(binary) {
  return directories.some((directory) => existsSync(join(directory, binary)));
}

function stop(message) {
  console.error(message);
  process.exit(1);
}

/** Runs one command without a shell, quietly; its output is shown only when it fails. */
function run(command, args) {
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const { status, stdout, stderr, error } = spawnSync(command, args, { env: environment, encoding: 'utf8' });
  if (status !== 0)
    stop(`${stdout ?? ''}${stderr ?? ''}${command} ${args.join(' ')}: ${error?.message ?? `exit ${status}`}`);
}

const missing = wanted.filter(({ binary, variable }) => {
  const chosen = variable && process.env[variable];
  if (chosen === undefined) return !isInstalled(binary);
  if (!existsSync(chosen)) stop(`${variable} names ${chosen}, which does not exist`);
  return false;
});

if (missing.length > 0) {
  const names = missing.flatMap(({ debian }) => debian);
  if (process.platform === 'darwin' && isInstalled('brew')) {
    run('brew', ['install', ...missing.map(({ brew }) => brew)]);
  } else if (isInstalled('apt-get') && process.getuid?.() === 0) {
    run('apt-get', ['update', '-qq']);
    // libfaketime lets tests move the Redis clock; without it those tests skip themselves.
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names, 'libfaketime']);
  } else {
    stop(
      `Install ${missing.map(({ binary }) => binary).join(', ')} (Debian, as root: apt-get install ${names.join(' ')} libfaketime), then run this again.`,
    );
  }
  const still = missing.filter(({ binary }) => !isInstalled(binary));
  if (still.length > 0) stop(`Installed, but not found on PATH: ${still.map(({ binary }) => binary).join(', ')}`);
}
