import { describe, expect, it } from 'vitest';
import { InvalidOptionError, UnknownPolicyError } from '../../../src/errors.js';
import { type Leave, OutboundGate, type OutboundOptions } from '../../../src/outbound/outbound-gate.js';
import { ManualTime, MemoryCeiling, storeClock } from '../../../src/testing.js';
import { limiterOf, remoteLimiterOf, soFar } from '../../support/limiter-under-test.js';

/** The upstream answers a request that was sent: to be left alone for so many seconds. */
function answer(leave: Leave, seconds: number, status = 429): void {
  if (!leave.granted) throw new Error('Expected a request that was sent.');
  leave.answered(status, (name) => (name === 'retry-after' ? String(seconds) : undefined));
}

const request = (url = 'https://api.example.org/a') => ({ url: new URL(url), method: 'GET' });

async function gateOf(options: Partial<OutboundOptions> = {}, local = { rate: 10, burst: 2 }) {
  const { limiter, time } = await limiterOf({ name: 'upstream', local });
  return { gate: new OutboundGate(limiter, { policy: 'upstream', ...options }, time), limiter, time };
}

describe('a request to an upstream', () => {
  it('waits for its tokens, one origin apart from the other', async () => {
    const { gate, time } = await gateOf();
    for (let i = 0; i < 2; i++) expect(await gate.leave(request())).toMatchObject({ granted: true });
    const third = gate.leave(request('https://api.example.org/b'));
    expect(await soFar(third)).toBe('pending');
    expect(await gate.leave(request('https://other.example.org/'))).toMatchObject({ granted: true });
    await time.advance(100);
    expect(await third).toMatchObject({ granted: true });
  });

  it('is not sent while its upstream has asked to be left alone, and takes no tokens meanwhile', async () => {
    const { gate, time, limiter } = await gateOf({}, { rate: 10, burst: 3 });
    const [first, also] = [await gate.leave(request()), await gate.leave(request())];
    answer(first, 3);
    const second = gate.leave(request());
    await time.advance(2_999);
    expect(await soFar(second)).toBe('pending');
    expect(limiter.stats()[0]).toMatchObject({ allowed: 2, blocked: 1 });
    // Told so again while it waits: the longer of the two holds.
    answer(also, 1);
    await time.advance(1);
    expect(await soFar(second)).toBe('pending');
    await time.advance(999);
    expect(await second).toMatchObject({ granted: true });
  });

  it('is held also where the upstream asks while it waits for its tokens', async () => {
    const { gate, time } = await gateOf({}, { rate: 1, burst: 1 });
    const first = await gate.leave(request());
    const second = gate.leave(request());
    await time.advance(500);
    answer(first, 4, 503);
    await time.advance(3_999);
    expect(await soFar(second)).toBe('pending');
    await time.advance(1);
    expect(await second).toMatchObject({ granted: true });
  });

  it('is refused at once where it can not be sent in time, with the time at which it could', async () => {
    const { gate } = await gateOf({ maxWaitMs: 1_000 }, { rate: 1, burst: 1 });
    await gate.leave(request());
    const second = gate.leave(request());
    expect(await gate.leave(request())).toMatchObject({ granted: false, policy: 'upstream', retryAfterMs: 2_000 });
    answer(await gate.leave(request('https://other.example.org/')), 5);
    expect(await gate.leave(request('https://other.example.org/'))).toMatchObject({
      granted: false,
      retryAfterMs: 5_000,
    });
    expect(await soFar(second)).toBe('pending');
  });

  it('that is aborted waits no more, for tokens or for the upstream', async () => {
    const { gate, time, limiter } = await gateOf({}, { rate: 1, burst: 1 });
    await gate.leave(request());
    const abort = new AbortController();
    const forTokens = gate.leave(request(), abort.signal);
    answer(await gate.leave(request('https://other.example.org/')), 5);
    const forUpstream = gate.leave(request('https://other.example.org/'), abort.signal);
    abort.abort(new Error('enough'));
    await expect(forTokens).rejects.toThrow('enough');
    await expect(forUpstream).rejects.toThrow('enough');
    expect(limiter.stats()[0]).toMatchObject({ waiting: 0, allowed: 2 });
    await time.advance(10_000);
  });

  it('is left alone no longer than the cap, or not at all where the upstream is not heeded', async () => {
    const { gate, time } = await gateOf({ maxWaitMs: 120_000 });
    answer(await gate.leave(request()), 86_400);
    const held = gate.leave(request());
    await time.advance(59_999);
    expect(await soFar(held)).toBe('pending');
    await time.advance(1);
    expect(await held).toMatchObject({ granted: true });
    const { gate: deaf } = await gateOf({ heedUpstream: false });
    answer(await deaf.leave(request()), 86_400);
    expect(await deaf.leave(request())).toMatchObject({ granted: true });
  });

  it('has a key, a cost and a policy by functions; without a policy it is not limited', async () => {
    const { gate } = await gateOf({
      policy: ({ method }) => (method === 'GET' ? 'upstream' : undefined),
      key: ({ url }) => url.pathname,
      cost: ({ url }) => Number(url.searchParams.get('cost')),
      maxWaitMs: 0,
    });
    expect(await gate.leave(request('https://api.example.org/a?cost=2'))).toMatchObject({ granted: true });
    expect(await gate.leave(request('https://api.example.org/a?cost=1'))).toMatchObject({ granted: false });
    expect(await gate.leave(request('https://api.example.org/b?cost=1'))).toMatchObject({ granted: true });
    expect(await gate.leave({ ...request(), method: 'PUT' })).toMatchObject({ granted: true });
  });

  it.each([
    [{ policy: 7 }, InvalidOptionError],
    [{ policy: 'up' }, UnknownPolicyError],
    [{ key: 'host' }, InvalidOptionError],
    [{ cost: 0 }, InvalidOptionError],
    [{ maxWaitMs: -1 }, InvalidOptionError],
    [{ mostPauseMs: Number.NaN }, InvalidOptionError],
    [{ heedUpstream: 1 }, InvalidOptionError],
    [{ heed: true }, InvalidOptionError],
  ])('can not have the options %j', async (options, error) => {
    await expect(gateOf(options as never)).rejects.toThrow(error);
  });

  it('is held in other instances as well, once one has been told', async () => {
    const time = new ManualTime(1_000);
    const ceiling = new MemoryCeiling({ clock: storeClock(time) });
    const policy = { name: 'upstream', ceiling: { rate: 10, burst: 10 } };
    const gates: OutboundGate[] = [];
    for (const chance of [0.3, 0.6]) {
      const { limiter } = await limiterOf(policy, { time, ceiling, random: () => chance });
      gates.push(new OutboundGate(limiter, { policy: 'upstream' }, time));
    }
    const [here, there] = gates as [OutboundGate, OutboundGate];
    answer(await here.leave(request()), 3);
    const elsewhere = there.leave(request());
    await time.advance(2_999);
    expect(await soFar(elsewhere)).toBe('pending');
    await time.advance(1);
    expect(await elsewhere).toMatchObject({ granted: true });
  });

  it('is held here where the store keeps no marks', async () => {
    const { limiter, time } = await remoteLimiterOf({ name: 'upstream', local: { rate: 10, burst: 10 } });
    const gate = new OutboundGate(limiter, { policy: 'upstream' }, time);
    answer(await gate.leave(request()), 3);
    const second = gate.leave(request());
    await time.advance(2_999);
    expect(await soFar(second)).toBe('pending');
    await time.advance(1);
    expect(await second).toMatchObject({ granted: true });
  });
});
