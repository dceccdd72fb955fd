import diagnostics from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createLimiter, type DiagnosticsMessages, type PolicyDocument } from '../../../src/index.js';
import { diagnosticsObserver } from '../../../src/telemetry/diagnostics.js';
import { type Observer, silentObserver } from '../../../src/telemetry/observer.js';
import { ManualTime } from '../../../src/testing.js';
import { everythingHappens, KEY } from './scenario.js';

const PAGE = readFileSync(new URL('../../../docs/diagnostics.md', import.meta.url), 'utf8');
const NAMES = [
  'headgate:decision',
  'headgate:lease',
  'headgate:policy',
  'headgate:degraded',
] as const satisfies (keyof DiagnosticsMessages)[];

const unsubscribes: (() => void)[] = [];
afterEach(() => {
  for (const unsubscribe of unsubscribes.splice(0)) unsubscribe();
});

function subscribe<Name extends keyof DiagnosticsMessages>(
  name: Name,
  listener: (message: DiagnosticsMessages[Name]) => void,
): void {
  const untyped = (message: unknown): void => listener(message as DiagnosticsMessages[Name]);
  diagnostics.subscribe(name, untyped);
  unsubscribes.push(() => diagnostics.unsubscribe(name, untyped));
}

function messagesOf<Name extends keyof DiagnosticsMessages>(name: Name): DiagnosticsMessages[Name][] {
  const messages: DiagnosticsMessages[Name][] = [];
  subscribe(name, (message) => messages.push(message));
  return messages;
}

/** The names in the first column of the table under a heading. */
function fieldsOf(heading: string): string[] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name as string);
}

async function limiterOf(policy: Partial<PolicyDocument>) {
  const time = new ManualTime();
  return createLimiter({
    policies: [{ name: 'api', local: { rate: 1, burst: 3 }, ...policy }],
    instanceId: 'web-7',
    time,
    telemetry: false,
  });
}

describe('the diagnostics channels', () => {
  it('have messages with exactly the fields of docs/diagnostics.md, and never a key', () => {
    const seen = new Map(NAMES.map((name) => [name, messagesOf(name) as object[]]));
    const observer = diagnosticsObserver(silentObserver, 'web-7');
    everythingHappens(observer);
    observer.allowed?.({ policy: 'api', policyVersion: 2, cost: 1, degraded: false });
    for (const [name, messages] of seen) {
      expect(fieldsOf(name).length).toBeGreaterThan(3);
      expect(messages.length).toBeGreaterThan(1);
      for (const message of messages) {
        expect(Object.keys(message)).toEqual(fieldsOf(name));
        expect(message).toMatchObject({ instanceId: 'web-7' });
      }
    }
    expect(JSON.stringify([...seen.values()])).not.toContain(KEY);
    expect([...PAGE.matchAll(/^## (headgate:\w+)$/gm)].map(([, name]) => name)).toEqual(NAMES);
  });

  it('tell every decision once, whichever verb made it', async () => {
    const limiter = await limiterOf({});
    const decisions = messagesOf('headgate:decision');
    const api = limiter.policy('api');
    api.tryAcquire(KEY);
    api.decide(KEY);
    api.key(KEY).tryAcquire();
    await api.acquire(KEY, { cost: 2 });
    api.tryAcquire(KEY);
    const passed = { allowed: true, cost: 1, shadow: false, degraded: false, policy: 'api', policyVersion: 0 };
    const denied = { allowed: false, limitedBy: 'local', reason: 'empty' };
    expect(decisions).toMatchObject([
      passed,
      passed,
      passed,
      { ...denied, cost: 2, retryAfterMs: 2_000 },
      { ...denied, cost: 1, retryAfterMs: 1_000 },
    ]);
    await limiter.close();
  });

  it('tell what a shadow policy would have denied', async () => {
    const limiter = await limiterOf({ mode: 'shadow', local: { rate: 1, burst: 1 } });
    const decisions = messagesOf('headgate:decision');
    const api = limiter.policy('api');
    expect([api.tryAcquire('k'), api.tryAcquire('k')]).toEqual([true, true]);
    expect(decisions).toMatchObject([
      { allowed: true, shadow: false, reason: undefined },
      { allowed: true, shadow: true, limitedBy: 'local', reason: 'empty' },
    ]);
    await limiter.close();
  });

  it('tell of policies given in code', async () => {
    const policies = messagesOf('headgate:policy');
    await (await limiterOf({})).close();
    expect(policies).toMatchObject([{ policy: 'api', version: 0, outcome: 'applied', via: 'code' }]);
  });

  it('make nothing without subscribers, and are heard as soon as there is one', () => {
    const nobody = new Proxy(Object.freeze({}), {
      get() {
        throw new Error('something was read to make a message of');
      },
    }) as never;
    const observer = diagnosticsObserver(silentObserver, 'web-7');
    expect(observer.watchesDenials()).toBe(false);
    expect(observer.allowedWatch?.hasSubscribers).toBe(false);
    observer.allowed?.(nobody);
    observer.denied(nobody);
    observer.policyChanged(nobody);
    observer.degradedChanged(nobody);
    expect(observer.roundTrip(nobody, () => {})).toBe(silentObserver.roundTrip(nobody, () => {}));

    messagesOf('headgate:decision');
    expect(observer.watchesDenials()).toBe(true);
    expect(observer.allowedWatch?.hasSubscribers).toBe(true);
  });

  it('leave another observer what it had', () => {
    const calls: string[] = [];
    const inner: Observer = {
      ...silentObserver,
      allowedWatch: { hasSubscribers: true },
      allowed: () => calls.push('allowed'),
      watchesDenials: () => true,
      denied: () => calls.push('denied'),
      roundTrip: (_, send) => {
        send();
        return () => calls.push('trip');
      },
      policyChanged: () => calls.push('policy'),
      degradedChanged: () => calls.push('degraded'),
    };
    const observer = diagnosticsObserver(inner, 'web-7');
    expect(observer.allowedWatch?.hasSubscribers).toBe(true);
    for (const subscribed of [false, true]) {
      if (subscribed) for (const name of NAMES) messagesOf(name);
      observer.allowed?.({} as never);
      everythingHappens(observer);
    }
    const once = [
      'allowed',
      'trip',
      'trip',
      ...Array.from({ length: 6 }, () => 'policy'),
      'degraded',
      'degraded',
      'denied',
    ];
    expect(calls).toEqual([...once, ...once]);
  });

  it('do no harm where a subscriber throws: the call goes on, others are told, and Node raises it later', async () => {
    const raised: unknown[] = [];
    process.setUncaughtExceptionCaptureCallback((error) => raised.push(error));
    try {
      const limiter = await limiterOf({});
      const thrown = new Error('mine');
      for (const name of NAMES) {
        subscribe(name, () => {
          throw thrown;
        });
      }
      const decisions = messagesOf('headgate:decision');
      const api = limiter.policy('api');
      expect([1, 2, 3, 4].map(() => api.tryAcquire('k'))).toEqual([true, true, true, false]);
      expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, true, false]);
      expect(limiter.stats()).toMatchObject([{ allowed: 3, deniedLocal: 1 }]);
      let sent = 0;
      const end = diagnosticsObserver(silentObserver, 'x').roundTrip(
        { policies: [], calls: 1, need: 1, want: 1 },
        () => sent++,
      );
      end({ durationMs: 1, granted: 1, failed: 0 });
      expect(sent).toBe(1);
      expect(raised).toEqual([]);
      await nextTurn();
      expect(raised).toEqual(Array.from({ length: 5 }, () => thrown));
      await limiter.close();
    } finally {
      process.setUncaughtExceptionCaptureCallback(null);
    }
  });
});
