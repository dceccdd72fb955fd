import { pathToFileURL } from 'node:url';
import { execute } from '../../../src/ceiling/ledger.js';
import { MemoryCeiling } from '../../../src/ceiling/memory-ceiling.js';
import { createLimiter } from '../../../src/create-limiter.js';

/** The parts of the product a fleet is run with; a mutant's are loaded from a folder of their own. */
export interface Production {
  readonly createLimiter: typeof createLimiter;
  readonly MemoryCeiling: typeof MemoryCeiling;
  readonly execute: typeof execute;
}

/** The product as it stands. */
export const production: Production = { createLimiter, MemoryCeiling, execute };

/** The same parts of a copy of the product, compiled to `folder`. */
export async function productionFrom(folder: string): Promise<Production> {
  const load = (path: string): Promise<Production> =>
    import(/* @vite-ignore */ pathToFileURL(`${folder}/${path}`).href);
  const [root, ceiling, ledger] = await Promise.all([
    load('create-limiter.js'),
    load('ceiling/memory-ceiling.js'),
    load('ceiling/ledger.js'),
  ]);
  return { createLimiter: root.createLimiter, MemoryCeiling: ceiling.MemoryCeiling, execute: ledger.execute };
}
