export { accessLineParser, jsonLineParser } from './log-line.js';
export type { DeniedKey } from './most-denied.js';
export { type LogReading, type Malformed, readLog } from './read-log.js';
export { Replay, type ReplayOptions, type ReplayReport, type TierReport } from './replay.js';
export { KEY_KINDS, type KeyKind, type LoggedRequest, type RequestFields, requestReader } from './request.js';
export type { Sizing } from './tier-sizing.js';
