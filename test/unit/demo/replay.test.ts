import { describe, expect, it } from 'vitest';
import { parseLogLine } from '../../../src/demo/access-log.js';
import { ExactBuckets } from '../../../src/demo/exact-buckets.js';
import { Latency } from '../../../src/demo/latency.js';
import { judgeReplay, type ReplayedRequest } from '../../../src/demo/replay-verdict.js';

describe('parseLogLine', () => {
  it('reads combined and common log lines', () => {
    const at = Date.UTC(2015, 4, 17, 10, 5, 3);
    for (const line of [
      '10.0.0.1 - - [17/May/2015:10:05:03 +0000] "GET /p15 HTTP/1.1" 200 25230 "-" "-"',
      '10.0.0.1 - frank smith [17/May/2015:12:05:03 +0200] "GET / HTTP/1.0" 200 1',
      '10.0.0.1 - - [17/May/2015:05:35:03 -0430] "" 408 -',
    ]) {
      expect(parseLogLine(line), line).toEqual({ client: '10.0.0.1', at });
    }
    expect(parseLogLine('2001:db8::1 - - [01/Jan/2024:00:00:00 +0000] "GET / HTTP/2" 200 1')?.client).toBe(
      '2001:db8::1',
    );
  });

  it('leaves what is no log line', () => {
    for (const line of [
      '',
      'hello',
      '10.0.0.1 - - [17/Mai/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1',
      '10.0.0.1 - - [yesterday] "GET / HTTP/1.1" 200 1',
      `${'x'.repeat(600)} - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1`,
    ]) {
      expect(parseLogLine(line), line).toBeUndefined();
    }
  });
});

describe('ExactBuckets', () => {
  it('takes from both buckets or from neither', () => {
    const buckets = new ExactBuckets({ rate: 1, burst: 2 }, { rate: 1, burst: 3 });
    expect(['a', 'a', 'a', 'b', 'b'].map((client) => buckets.admit(client, 0))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    // b was charged once: its second token is still there when the global bucket has one again.
    expect(buckets.admit('b', 1_000)).toBe(true);
    expect(buckets.admit('c', 1_000)).toBe(false);
  });
});

describe('judgeReplay', () => {
  const terms = { rate: 1, burst: 2 };
  const request = (client: string, at: number, admitted = true): ReplayedRequest => ({
    client,
    arrivedAt: at,
    clientAt: admitted ? at : undefined,
    globalAt: admitted ? at : undefined,
    reason: admitted ? '' : 'empty',
  });

  it('compares with exact buckets that see the same arrivals, and names who was denied most', () => {
    const requests = [
      request('a', 0),
      request('a', 1),
      request('a', 2, false),
      request('b', 3, false),
      request('b', 4),
    ];
    const verdict = judgeReplay(requests, terms, { rate: 100, burst: 100 });
    expect(verdict).toMatchObject({
      ok: true,
      admitted: 3,
      exactAdmitted: 4,
      ratio: 0.75,
      deniedByClient: 2,
      clients: 2,
    });
    expect(verdict.mostDenied).toEqual([
      { client: 'a', denied: 1, requests: 3 },
      { client: 'b', denied: 1, requests: 2 },
    ]);
  });

  it('finds the one client whose bound was broken, by tokens that the global ceiling made useless too', () => {
    const vain = { ...request('b', 2), globalAt: undefined, reason: 'empty' };
    const requests = [request('a', 0), request('b', 0), request('b', 1), vain];
    const verdict = judgeReplay(requests, terms, { rate: 100, burst: 100 });
    expect(verdict).toMatchObject({ ok: false, brokenClients: ['b'], deniedByGlobal: 1, deniedByClient: 0 });
    expect(verdict.clientWindow).toMatchObject({ client: 'b', admitted: 3 });
  });

  it('finds the global ceiling broken though each client kept its own', () => {
    const requests = ['a', 'b', 'c'].map((client) => request(client, 0));
    expect(judgeReplay(requests, terms, terms)).toMatchObject({ ok: false, brokenClients: [] });
  });
});

describe('Latency', () => {
  it('adds up what several processes measured, and is off by no more than its buckets are wide', () => {
    const one = new Latency();
    const two = new Latency();
    for (let i = 1; i <= 1_000; i++) (i % 2 ? one : two).record(i * 100);
    one.add(two.counts);
    expect(one.percentile(0.5) / 50_000).toBeCloseTo(1, 1);
    expect(one.percentile(0.99) / 99_000).toBeCloseTo(1, 1);
    expect(new Latency().percentile(0.5)).toBe(0);
  });
});
