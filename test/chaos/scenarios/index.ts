import type { Scenario } from '../scenario.js';
import { clusterScenarios } from './cluster.js';
import { failoverScenarios } from './failover.js';
import { instanceScenarios } from './instances.js';
import { networkScenarios } from './network.js';
import { outageModeScenarios } from './outage-modes.js';
import { policyScenarios } from './policies.js';
import { redisDataScenarios } from './redis-data.js';
import { redisErrorScenarios } from './redis-errors.js';
import { splitBrainScenarios } from './split-brain.js';

/** All of them, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  ...redisDataScenarios,
  ...redisErrorScenarios,
  ...failoverScenarios,
  ...splitBrainScenarios,
  ...clusterScenarios,
  ...instanceScenarios,
  ...networkScenarios,
  ...policyScenarios,
  ...outageModeScenarios,
];
