import { describe, expect, it } from 'vitest';
import { InvalidScenarioError, type Scenario, simulate } from '../../../src/simulation/index.js';

const good = {
  duration: '1s',
  policies: [{ name: 'api', ceiling: { rate: 10, burst: 5 } }],
  fleet: [{ instances: 1, traffic: { rate: 1 } }],
};

async function faultOf(scenario: unknown): Promise<InvalidScenarioError> {
  const fault = await simulate(scenario as Scenario).catch((error: unknown) => error);
  expect(fault).toBeInstanceOf(InvalidScenarioError);
  return fault as InvalidScenarioError;
}

describe('a scenario', () => {
  it('may be no more than a duration, a policy and a fleet', async () => {
    await expect(simulate(good as Scenario)).resolves.toMatchObject({ seed: 1, durationMs: 1_000, windowsOver: 0 });
  });

  const traffic = (more: object) => ({ ...good, fleet: [{ instances: 1, traffic: more }] });
  const event = (more: object) => ({ ...good, events: [{ at: 0, ...more }] });
  it.each<[unknown, string]>([
    [null, 'Expected a scenario to be an object, got null.'],
    [{ ...good, fleets: 1 }, 'to be an object with no fields but name, seed, duration'],
    [
      { ...good, duration: 'long' },
      "Expected `duration` to be a time such as '500ms', '30s', '5m', or a number of ms, got \"long\".",
    ],
    [{ ...good, warmUp: '1s' }, 'Expected `warmUp` to be shorter than `duration`, got "1s".'],
    [{ ...good, seed: 1.5 }, 'Expected `seed` to be a whole number from 0 to 9007199254740991, got 1.5.'],
    [{ ...good, policies: [] }, 'Expected `policies` to be an array of at least one policy, got an array of 0.'],
    [
      { ...good, policies: [{ name: 'api' }] },
      'Expected `policies[0]` to be a policy, got one that is not: Expected a policy to have',
    ],
    [
      { ...good, fleet: [{ traffic: { rate: 1 } }] },
      'Expected `fleet[0].instances` to be a whole number from 1 to 100000, got undefined.',
    ],
    [
      { ...good, fleet: [good.fleet[0], { ...good.fleet[0], name: 'group 1' }] },
      'Expected `fleet[1].name` to be a name of its own, got "group 1".',
    ],
    [traffic({ rate: 0 }), 'Expected `fleet[0].traffic.rate` to be a positive number of calls a second, got 0.'],
    [
      traffic({ rate: 1, size: 2 }),
      'Expected `fleet[0].traffic.size` to be left out where `shape` is "poisson", got 2.',
    ],
    [
      traffic({ shape: 'wave' }),
      'Expected `fleet[0].traffic.shape` to be one of "poisson", "steady", "bursts", "cron", got "wave".',
    ],
    [traffic({ rate: 1, policy: 'web' }), 'Expected `fleet[0].traffic.policy` to be one of "api", got "web".'],
    [
      traffic({ rate: 1, cost: 6 }),
      'Expected `fleet[0].traffic.cost` to be at most the burst of the policy (5), got 6.',
    ],
    [traffic({ rate: 1, from: '2s' }), 'Expected `fleet[0].traffic.until` to be after `from`, got undefined.'],
    [
      traffic({ rate: 1, key: { count: 0 } }),
      'Expected `fleet[0].traffic.key.count` to be a whole number from 1 to 100000000, got 0.',
    ],
    [{ ...good, network: { loss: 2 } }, 'Expected `network.loss` to be a number from 0 to 1, got 2.'],
    [event({}), 'Expected `events[0].kind` to be one of "crash", "stall"'],
    [event({ kind: 'stall' }), 'Expected `events[0].for` to be a time'],
    [
      event({ kind: 'stall', for: 1, lag: 2 }),
      'Expected `events[0]` to be an object with no fields but at, kind, instances, for, got "lag".',
    ],
    [
      event({ kind: 'crash', instances: { groups: ['web'] } }),
      'Expected `events[0].instances.groups[0]` to be one of "group 1", got "web".',
    ],
    [
      event({ kind: 'publish', policy: { name: 'other', local: { rate: 1, burst: 1 } } }),
      'Expected `events[0].policy` to be one of "api", got "other".',
    ],
    [
      { ...good, events: [{ at: '2s', kind: 'store-loss' }] },
      'Expected `events[0].at` to be within `duration`, got "2s".',
    ],
  ])('is refused, with the field and the reason: %#', async (scenario, message) => {
    expect((await faultOf(scenario)).message).toContain(message);
  });

  it('says where the fault is, for tools that show the line', async () => {
    const fault = await faultOf(traffic({ rate: 1, cost: -1 }));
    expect(fault.path).toEqual(['fleet', 0, 'traffic', 'cost']);
    expect(fault.code).toBe('HEADGATE_INVALID_OPTION');
  });
});
