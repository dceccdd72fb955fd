import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleInstance } from './instance/bundle.js';
import { ProcessPool } from './process-pool.js';
import type { Scenario } from './scenario.js';
import { scenarios } from './scenarios/index.js';
import { LEASE_END_MS, never, type Outcome, POLICY, Stage } from './stage.js';
import { missingRows, writeTable } from './table.js';

/** `npm run chaos`: every scenario, faults of their full length, processes of its own for each; and the table. */
const full = process.env['HEADGATE_CHAOS'] === 'full';

describe('a fleet of processes on real servers keeps its bound:', () => {
  const outcomes = new Map<Scenario, Outcome>();
  const changed = new Map<Scenario, Outcome>();
  let instance: Awaited<ReturnType<typeof bundleInstance>>;
  let processes: ProcessPool;
  /** For short faults side by side. */
  let shared: ProcessPool;

  beforeAll(async () => {
    instance = await bundleInstance();
    shared = new ProcessPool(instance.program, true);
    processes = full ? new ProcessPool(instance.program, false) : shared;
  });
  afterAll(async () => {
    const troubles = await shared.close();
    await instance.remove();
    if (full) writeTable(scenarios, outcomes, changed);
    expect(troubles).toEqual([]);
  });

  it('(or else is found out: one that admits everything in an outage is over it)', async () => {
    const stage = new Stage({ processes, full });
    try {
      const { fleet } = await stage.fleetOnRedis({ policy: { ...POLICY, outage: { mode: 'allow' } } });
      await fleet.onLinks((link) => link.refuseConnections());
      await fleet.onLinks((link) => link.cut());
      await stage.last(LEASE_END_MS);
      const { over, problems } = await stage.conclude(fleet, { rules: [never(fleet)] });
      expect(over).toBeGreaterThan(0);
      expect(problems).toEqual([expect.stringContaining('any window')]);
    } finally {
      await stage.dispose();
    }
  });

  for (const scenario of scenarios.filter(({ inTests }) => full || inTests)) {
    const { name, missing } = scenario;
    it.skipIf(missing?.() !== undefined)(name, { timeout: 120_000 }, async () => {
      const stage = new Stage({ processes, full });
      try {
        const outcome = await scenario.play(stage);
        expect(outcome.problems).toEqual([]);
        outcomes.set(scenario, outcome);
      } finally {
        await stage.dispose();
      }
    });
  }

  describe.concurrent('and a policy is raised and tightened meanwhile:', () => {
    const played = scenarios.filter(({ changesTerms }) => !changesTerms);
    for (const scenario of played.filter(({ changedInTests }) => full || changedInTests)) {
      const { name, missing } = scenario;
      it.skipIf(missing?.() !== undefined)(name, { timeout: 120_000 }, async () => {
        const stage = new Stage({ processes: shared, full: false, changesTerms: true });
        try {
          const outcome = await scenario.play(stage);
          expect(outcome.problems).toEqual([]);
          changed.set(scenario, outcome);
        } finally {
          await stage.dispose();
        }
      });
    }
  });
});

describe('docs/guarantees.md', () => {
  it.skipIf(full)('has a row for each fault, with its bound', () => {
    expect(missingRows(scenarios)).toEqual([]);
  });
});
