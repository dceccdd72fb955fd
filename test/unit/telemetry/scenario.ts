import * as api from '@opentelemetry/api';
import type { Observer } from '../../../src/telemetry/observer.js';
import { readings } from './sdk.js';

/** What must never be seen outside: a key, which an error message of a server quotes. */
export const KEY = 'tenant-4711-secret';

/** Makes an observer see one of everything that can happen. */
export function everythingHappens(observer: Observer): void {
  const replyError = Object.assign(new Error(`ERR unknown command, with args beginning with: '${KEY}'`), {
    name: 'ReplyError',
    command: { name: 'evalsha', args: [KEY] },
  });
  const error = new Error(`No lease for ${KEY}`, { cause: replyError });
  const publisher = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' };

  observer.attach(readings({ policy: 'api', allowed: 1 }));
  const lease = { policies: ['api'], calls: 2, need: 1, want: 20 };
  observer.roundTrip(lease, () => {})({ durationMs: 2, granted: 20, failed: 0 });
  observer.roundTrip(lease, () => {})({ durationMs: 100, granted: 0, failed: 2, error });

  const change = { policy: 'api', version: 2, previousVersion: 1, lagMs: 12, trace: publisher, error: undefined };
  observer.policyChanged({ ...change, outcome: 'applied', via: 'hint' });
  observer.policyChanged({ ...change, outcome: 'ignored', via: 'watch' });
  observer.policyChanged({ ...change, outcome: 'invalid', via: 'watch', error });
  observer.policyChanged({ ...change, outcome: 'removed', via: 'snapshot', previousVersion: undefined });
  observer.policyChanged({ ...change, outcome: 'applied', via: 'code', trace: undefined });
  observer.policyChanged({ ...change, outcome: 'invalid', via: 'code', trace: undefined, error });

  observer.degradedChanged({ degraded: true, forMs: undefined, error });
  observer.degradedChanged({ degraded: false, forMs: 5_000, error: undefined });
  observer.trouble(error);

  api.trace.getTracer('app').startActiveSpan('request', (request) => {
    observer.waiting('api', 3)('allowed');
    observer.waiting('api', 3)('denied');
    observer.waiting('api', 3)('aborted');
    const note = { policy: 'api', policyVersion: 2, limitedBy: 'ceiling', reason: 'empty', cost: 3 } as const;
    if (observer.watchesDenials()) observer.denied({ ...note, retryAfterMs: 250, shadow: false });
    request.end();
  });
}
