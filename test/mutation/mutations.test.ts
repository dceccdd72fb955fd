import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { adversary } from '../support/fleet/adversary.js';
import { histories } from '../support/fleet/histories/index.js';
import { Mutants } from '../support/fleet/mutants.js';
import { type Production, production } from '../support/fleet/production.js';
import { broken } from '../support/fleet/run.js';
import { SLIP } from '../support/fleet/stage.js';
import { faultMutations } from './fault-mutations.js';
import { holderMutations } from './holder-mutations.js';
import { ledgerMutations } from './ledger-mutations.js';
import type { Mutation } from './mutation.js';
import { windowMutations } from './window-mutations.js';

/** The first that notices is one of the first few, mostly; what changes in the product changes which. */
const MOST_FLEETS = 100;

const mutations = [...ledgerMutations, ...faultMutations, ...holderMutations, ...windowMutations];

describe('a rule taken out is noticed', () => {
  let mutants: Mutants;
  beforeAll(() => {
    mutants = new Mutants();
  }, 60_000);
  afterAll(() => mutants.remove());

  for (const mutation of mutations) {
    const { rule, without, edits, given = [], foundBy } = mutation;
    it(`rule ${rule}: without ${without}`, async () => {
      for (const edit of [...edits, ...given]) expect([edit.find, mutants.occurrences(edit)]).toEqual([edit.find, 1]);

      const sound = given.length > 0 ? await mutants.make(given) : production;
      expect(await notices(mutation, sound), 'noticed where nothing was taken out').toBe(false);
      expect(await notices(mutation, await mutants.make([...given, ...edits])), 'noticed').toBe(true);
    }, 60_000);

    if (!foundBy) continue;
    it(`rule ${rule}: without ${without}, random fleets go over their bounds`, async () => {
      const mutant = await mutants.make(edits);
      for (let seed = 1; seed <= MOST_FLEETS; seed++)
        if (broken(await adversary(seed, foundBy, mutant)).length > 0) return;
      expect.fail(`Expected one of ${MOST_FLEETS} fleets to notice.`);
    }, 120_000);
  }
});

async function notices({ caughtBy }: Mutation, tried: Production): Promise<boolean> {
  const [history, ...others] = histories.filter(({ shows }) => shows.startsWith(caughtBy));
  if (!history || others.length > 0) throw new Error(`Expected one history that begins with "${caughtBy}".`);
  return (await history.run(tried)) > SLIP;
}
