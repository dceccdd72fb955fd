import { spawn } from 'node:child_process';

/** What a process of Node's came to, and what it said. */
export interface NodeRun {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs Node with `args`, and `input` as its standard input, until it ends. Neither of its outputs is a terminal. */
export function runNode(
  args: readonly string[],
  input: string | Uint8Array = '',
  environment: Readonly<Record<string, string>> = {},
): Promise<NodeRun> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, ...environment },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const run: NodeRun = { code: null, stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (run.stdout += chunk));
    child.stderr.on('data', (chunk) => (run.stderr += chunk));
    // A program that reads nothing may be gone before all of it is written.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    child.once('error', reject);
    child.once('close', (code) => resolve({ ...run, code }));
  });
}
