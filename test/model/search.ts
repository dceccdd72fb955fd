import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MODEL = fileURLToPath(new URL('ledger.pml', import.meta.url));
/** Deeper than any history gets before it meets a state that was seen. */
const DEPTH = 5_000_000;

/** What a search of all histories came to. */
export interface Search {
  readonly errors: number;
  readonly states: number;
  /** Whether nothing was left out: no depth reached, no memory short, no search ended early. */
  readonly complete: boolean;
  /** Whether a history that violates the claim was written down. */
  readonly trail: boolean;
  /** The claim that was violated, as the model has it. */
  readonly violated: string | undefined;
}

/** Looks at every history of the model, compiled with these `-D` options; ends at the first that violates a claim. */
export async function search(...options: readonly string[]): Promise<Search> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-model-'));
  try {
    await tool('spin', ['-a', ...options, MODEL], directory);
    await tool('gcc', ['-O1', '-w', '-DSAFETY', '-o', 'pan', 'pan.c'], directory);
    const { stdout } = await run(join(directory, 'pan'), [`-m${DEPTH}`, '-w22'], { cwd: directory });
    return {
      errors: Number(/errors: (\d+)/.exec(stdout)?.[1] ?? Number.NaN),
      states: Number(/(\d+) states, stored/.exec(stdout)?.[1] ?? Number.NaN),
      complete: !/max search depth too small|Search not completed|out of memory|aborted/.test(stdout),
      trail: existsSync(join(directory, 'ledger.pml.trail')),
      violated: /assertion violated (.*) \(at depth/.exec(stdout)?.[1],
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function tool(name: 'spin' | 'gcc', args: readonly string[], cwd: string): Promise<void> {
  try {
    await run(name, args, { cwd });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new Error(`${name} is missing: run \`npm run servers\``);
    throw error;
  }
}
