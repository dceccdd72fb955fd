import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adversary } from '../support/fleet/adversary.js';
import { histories } from '../support/fleet/histories/index.js';
import { Mutants } from '../support/fleet/mutants.js';
import { type Production, production } from '../support/fleet/production.js';
import { broken } from '../support/fleet/run.js';
import { type History, SLIP } from '../support/fleet/stage.js';
import { faultMutations } from './fault-mutations.js';
import { holderMutations } from './holder-mutations.js';
import { ledgerMutations } from './ledger-mutations.js';
import type { Mutation } from './mutation.js';

const mutations = [...ledgerMutations, ...faultMutations, ...holderMutations];

describe('a rule taken out is noticed', () => {
  let mutants: Mutants;
  beforeAll(() => {
    mutants = new Mutants();
  }, 60_000);
  afterAll(() => mutants.remove());

  for (const mutation of mutations) {
    const { rule, without, edits, given = [] } = mutation;
    it(`rule ${rule}: without ${without}`, async () => {
      for (const edit of [...edits, ...given]) expect([edit.find, mutants.occurrences(edit)]).toEqual([edit.find, 1]);

      const sound = given.length > 0 ? await mutants.make(given) : production;
      expect(await notices(mutation, sound), 'noticed where nothing was taken out').toBe(false);
      expect(await notices(mutation, await mutants.make([...given, ...edits])), 'noticed').toBe(true);
    }, 60_000);
  }
});

async function notices({ caughtBy }: Mutation, tried: Production): Promise<boolean> {
  if (typeof caughtBy === 'string') return (await over(historyOf(caughtBy), tried)) > SLIP;
  for (let seed = 1; seed <= caughtBy.runs; seed++) {
    if (broken(await adversary(seed, caughtBy.profile, tried)).length > 0) return true;
  }
  return false;
}

/** How far a history went over its bound; one that could not even be played to its end went as far as can be. */
async function over(history: History, tried: Production): Promise<number> {
  return history.run(tried);
}

function historyOf(name: string): History {
  const [history, ...others] = histories.filter(({ shows }) => shows.startsWith(name));
  if (!history || others.length > 0) throw new Error(`Expected one history that begins with "${name}".`);
  return history;
}
