export type { Fairness } from './fairness.js';
export { maxMinLevel } from './fairness.js';
export type { GroupTally, Series } from './recorder.js';
export type { BucketReport, Report } from './report.js';
export type {
  EventDocument,
  GroupDocument,
  NetworkDocument,
  Scenario,
  Selection,
  TrafficDocument,
} from './scenario.js';
export { InvalidScenarioError } from './scenario-fields.js';
export { type Progress, type SimulateOptions, simulate } from './simulate.js';
