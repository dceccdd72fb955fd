import { describe, expect, it } from 'vitest';
import { InvalidOptionError, UnknownPolicyError } from '../../../src/errors.js';
import { OutboundGate, type OutboundOptions } from '../../../src/outbound/outbound-gate.js';
import { limiterOf, soFar } from '../../support/limiter-under-test.js';

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
    expect(await third).toMatchObject({ granted: true, key: 'https://api.example.org' });
  });

  it('is not sent while its upstream has asked to be left alone, and takes no tokens meanwhile', async () => {
    const { gate, time, limiter } = await gateOf();
    const first = await gate.leave(request());
    gate.answered('https://api.example.org', 429, (name) => (name === 'retry-after' ? '3' : undefined));
    expect(first.granted).toBe(true);
    const second = gate.leave(request());
    await time.advance(2_999);
    expect(await soFar(second)).toBe('pending');
    expect(limiter.stats()[0]).toMatchObject({ allowed: 1 });
    // Told so again while it waits: the longer of the two holds.
    gate.answered('https://api.example.org', 429, (name) => (name === 'retry-after' ? '1' : undefined));
    await time.advance(1);
    expect(await soFar(second)).toBe('pending');
    await time.advance(999);
    expect(await second).toMatchObject({ granted: true });
  });

  it('is held also where the upstream asks while it waits for its tokens', async () => {
    const { gate, time } = await gateOf({}, { rate: 1, burst: 1 });
    await gate.leave(request());
    const second = gate.leave(request());
    await time.advance(500);
    gate.answered('https://api.example.org', 503, (name) => (name === 'retry-after' ? '4' : undefined));
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
    gate.answered('https://other.example.org', 429, (name) => (name === 'retry-after' ? '5' : undefined));
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
    gate.answered('https://other.example.org', 429, (name) => (name === 'retry-after' ? '5' : undefined));
    const forUpstream = gate.leave(request('https://other.example.org/'), abort.signal);
    abort.abort(new Error('enough'));
    await expect(forTokens).rejects.toThrow('enough');
    await expect(forUpstream).rejects.toThrow('enough');
    expect(limiter.stats()[0]).toMatchObject({ waiting: 0, allowed: 1 });
    await time.advance(10_000);
  });

  it('is left alone no longer than the cap, or not at all where the upstream is not heeded', async () => {
    const day = (name: string) => (name === 'retry-after' ? '86400' : undefined);
    const { gate, time } = await gateOf({ maxWaitMs: 120_000 });
    gate.answered('https://api.example.org', 429, day);
    const held = gate.leave(request());
    await time.advance(59_999);
    expect(await soFar(held)).toBe('pending');
    await time.advance(1);
    expect(await held).toMatchObject({ granted: true });
    const { gate: deaf } = await gateOf({ heedUpstream: false });
    deaf.answered('https://api.example.org', 429, day);
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

  it('forgets upstreams whose pause is over', async () => {
    const { gate, time } = await gateOf();
    for (let i = 0; i < 1_500; i++) gate.answered(`https://${i}.example.org`, 429, () => '1');
    await time.advance(2_000);
    for (let i = 0; i < 1_500; i++) gate.answered(`https://${i}.example.org`, 429, () => '1');
    expect(await soFar(gate.leave(request('https://7.example.org/')))).toBe('pending');
    await time.advance(2_000);
  });
});
