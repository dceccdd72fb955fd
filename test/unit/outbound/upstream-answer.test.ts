import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pauseAskedFor } from '../../../src/outbound/upstream-answer.js';

const NOW = Date.parse('Mon, 30 Nov 2026 12:00:00 GMT');
const pause = (status: number, fields: Record<string, string>) => pauseAskedFor(status, (name) => fields[name], NOW);

describe('how long an upstream wants to be left alone', () => {
  it.each<[number, Record<string, string>, number]>([
    [429, { 'retry-after': '7' }, 7_000],
    [503, { 'retry-after': 'Mon, 30 Nov 2026 12:00:09 GMT' }, 9_000],
    [503, { 'retry-after': 'Mon, 30 Nov 2026 11:59:00 GMT' }, 0],
    // Retry-After of a redirect or a success is about something else.
    [200, { 'retry-after': '7' }, 0],
    [429, { 'retry-after': '1.5' }, 0],
    [429, { 'retry-after': '-3' }, 0],
    [429, { 'retry-after': 'soon' }, 0],
    [429, {}, 0],
    // Retry-After goes before the fields.
    [429, { 'retry-after': '2', ratelimit: '"a";r=0;t=50' }, 2_000],
    [200, { ratelimit: '"a";r=0;t=5' }, 5_000],
    [200, { ratelimit: '"a"; r=0; t=5' }, 5_000],
    [200, { ratelimit: '"a";a=0;w=5;c=1' }, 5_000],
    [200, { ratelimit: '"a";r=3;t=5' }, 0],
    [200, { ratelimit: '"a";r=0' }, 0],
    [200, { ratelimit: '"sec";r=0;t=1, "day";r=0;t=60;pk=:AAAA:, "other";r=5;t=900' }, 60_000],
    [200, { ratelimit: '"r=0;t=9, \\"";r=1;t=2' }, 0],
    [200, { ratelimit: 'limit=10, remaining=0, reset=4' }, 4_000],
    [200, { ratelimit: 'limit=10, remaining=1, reset=4' }, 0],
    [200, { 'ratelimit-remaining': '0', 'ratelimit-reset': '3' }, 3_000],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1_000 + 8) }, 8_000],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1_000 - 8) }, 0],
    [200, { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': '8' }, 8_000],
    [200, { 'x-ratelimit-remaining': '5', 'x-ratelimit-reset': '8' }, 0],
    [200, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': 'tomorrow' }, 0],
  ])('is for a %i with %j %i ms', (status, fields, ms) => {
    expect(pause(status, fields)).toBe(ms);
  });

  it('is never negative, never not a number, and never an error, whatever the fields', () => {
    const field = fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom(...'"\\;,=rtaw01 :') }));
    fc.assert(
      fc.property(
        fc.constantFrom(200, 429, 503),
        fc.dictionary(fc.constantFrom('retry-after', 'ratelimit', 'ratelimit-remaining', 'x-ratelimit-reset'), field),
        (status, fields) => {
          const ms = pause(status, fields);
          expect(ms).toBeGreaterThanOrEqual(0);
          expect(Number.isFinite(ms)).toBe(true);
        },
      ),
    );
  });
});
