import { describe, expect, it } from 'vitest';
import { histories } from '../../support/fleet/histories/index.js';
import { production } from '../../support/fleet/production.js';
import { SLIP } from '../../support/fleet/stage.js';

// Each is a timeline of real limiters and the real ledger: test/support/fleet/histories has them, step by step. What
// each of them would find if its rule were not there is shown in test/mutation.
describe('the ledger and its holders keep their bounds', () => {
  for (const { rule, shows, unit, run } of histories) {
    it(`rule ${rule}: ${shows}`, async () => {
      expect(await run(production), unit ?? 'tokens over the bound').toBeLessThanOrEqual(SLIP);
    });
  }
});
