import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { logLines } from '../../../src/replay/log-lines.js';
import { readLog } from '../../../src/replay/read-log.js';
import { ReorderBuffer } from '../../../src/replay/reorder-buffer.js';

/** Cut after each of these many bytes, the last again and again. */
function inPieces(bytes: Buffer, sizes: readonly number[]): Readable {
  const pieces: Buffer[] = [];
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    const size = sizes[Math.min(i, sizes.length - 1)] ?? 1;
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return Readable.from(pieces);
}

async function linesOf(source: Readable): Promise<string[]> {
  const lines: string[] = [];
  for await (const batch of logLines(source, () => {})) lines.push(...batch);
  return lines;
}

const texts = fc.array(fc.string({ unit: 'binary', maxLength: 20 }).map((text) => text.replaceAll('\n', ' ')));
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 });

describe('the lines of a log', () => {
  it('are the same however the bytes come, plain or in gzip, in one member or in several', async () => {
    await fc.assert(
      fc.asyncProperty(texts, texts, sizes, async (first, second, sizes) => {
        const [a, b] = [first, second].map((lines) => Buffer.from(lines.map((line) => `${line}\n`).join('')));
        const whole = Buffer.concat([a as Buffer, b as Buffer]);
        const expected = whole.toString().split('\n').slice(0, -1);
        // Two bytes that say "gzip" make a text unreadable as one.
        fc.pre(!(whole[0] === 0x1f && whole[1] === 0x8b));
        expect(await linesOf(inPieces(whole, sizes))).toEqual(expected);
        const zipped = Buffer.concat([gzipSync(a as Buffer), gzipSync(b as Buffer)]);
        expect(await linesOf(inPieces(zipped, sizes))).toEqual(expected);
      }),
    );
  });

  it('may lack the last line break, or all of them', async () => {
    expect(await linesOf(inPieces(Buffer.from('a\nb'), [1]))).toEqual(['a', 'b']);
    expect(await linesOf(inPieces(Buffer.from(''), [1]))).toEqual([]);
  });

  it('are cut where they are endless, and what follows is read', async () => {
    const long = 'x'.repeat(300_000);
    const lines = await linesOf(inPieces(Buffer.from(`a\n${long}\nb\n`), [50_000]));
    expect(lines.map(({ length }) => length)).toEqual([1, 65_536, 1]);
  });

  it('fail where gzip ends too early, and where it is damaged', async () => {
    const zipped = gzipSync(Buffer.from('a line\n'.repeat(1_000)));
    await expect(linesOf(inPieces(zipped.subarray(0, -12), [100]))).rejects.toMatchObject({ code: 'Z_BUF_ERROR' });
    zipped[20] = (zipped[20] ?? 0) ^ 0xff;
    await expect(linesOf(inPieces(zipped, [100]))).rejects.toThrow();
  });
});

describe('the reorder buffer', () => {
  const arrivals = fc.array(fc.record({ at: fc.nat(1_000), delay: fc.nat(50) }));

  it('lets everything out in order of time, and of arrival, where nothing comes later than the window', () => {
    fc.assert(
      fc.property(arrivals, (list) => {
        // Each comes up to 50 late, so none is more than 50 behind one that came before it.
        const coming = list.map((each, id) => ({ ...each, id })).sort((a, b) => a.at + a.delay - (b.at + b.delay));
        const buffer = new ReorderBuffer<(typeof coming)[number]>(50, 1_000);
        const out: typeof coming = [];
        for (const item of coming) {
          buffer.push(item);
          for (let due = buffer.shift(); due; due = buffer.shift()) out.push(due);
        }
        for (let left = buffer.flush(); left; left = buffer.flush()) out.push(left);
        expect(buffer.late).toBe(0);
        expect(out).toEqual(coming.toSorted((a, b) => a.at - b.at));
      }),
    );
  });

  it('lets go of the earliest where it would hold too many, and counts what comes too late', () => {
    const buffer = new ReorderBuffer<{ at: number }>(1_000, 2);
    for (const at of [5, 6, 7]) buffer.push({ at });
    expect(buffer.shift()).toEqual({ at: 5 });
    expect(buffer.shift()).toBeUndefined();
    buffer.push({ at: 4 });
    expect(buffer.late).toBe(1);
  });
});

describe('reading a log', () => {
  const reader = () => (line: string) => (line.startsWith('!') ? 'malformed' : { at: Number(line), key: 'k', cost: 1 });

  it('tells the requests in order, counts what it could not read, and shows the first of it with its line', async () => {
    const seen: number[] = [];
    let bytes = 0;
    const text = Buffer.from('3\n\n1\r\n!a\n2\n!b\n!c\n!d\n20\n4\n');
    const reading = await readLog(Readable.from([text]), {
      reorder: 10,
      reader,
      request: ({ at }) => seen.push(at),
      progress: (read) => {
        bytes = read;
      },
    });
    expect(seen).toEqual([1, 2, 3, 4, 20]);
    expect(reading).toMatchObject({ lines: 10, malformed: 4, late: 0 });
    expect(reading.samples).toEqual([
      { line: 4, reason: 'malformed', text: '!a' },
      { line: 6, reason: 'malformed', text: '!b' },
      { line: 7, reason: 'malformed', text: '!c' },
    ]);
    expect(bytes).toBe(text.length);
  });
});
