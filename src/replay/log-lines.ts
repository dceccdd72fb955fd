import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';

/** What of a longer line is looked at, in bytes: a file without line breaks must not fill the memory. */
const MOST_BYTES = 64 * 1_024;
const LINE_BREAK = 0x0a;
const GZIP = [0x1f, 0x8b];

/**
 * The lines of `source`, in batches, as they come: never more of them in memory than a chunk holds. What is compressed
 * with gzip is told by its first bytes and unpacked. Lines beyond 64 KiB are cut there.
 *
 * @param read told how many bytes of the source have been read, each time
 */
export async function* logLines(source: Readable, read: (bytes: number) => void): AsyncGenerator<string[]> {
  let bytes = 0;
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      bytes += chunk.length;
      read(bytes);
      yield chunk;
    }
  }
  const chunks = counted();
  // Two bytes, though a pipe may bring them one by one.
  let head = Buffer.alloc(0);
  while (head.length < GZIP.length) {
    const { value, done } = await chunks.next();
    if (done) break;
    head = Buffer.concat([head, value]);
  }
  async function* whole(): AsyncGenerator<Buffer> {
    yield head;
    yield* chunks;
  }
  yield* split(GZIP.every((byte, i) => head[i] === byte) ? unpacked(whole()) : whole());
}

async function* unpacked(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  // What goes wrong on the way in makes reading the other end fail with the same error.
  const feeding = pipeline(Readable.from(chunks), gunzip).catch(() => {});
  yield* gunzip;
  await feeding;
}

async function* split(chunks: AsyncIterable<Buffer>): AsyncGenerator<string[]> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_BREAK);
    if (end < 0) {
      // Of a line that goes on and on, no more than is looked at and one byte, which shows that it was cut.
      if (rest.length <= MOST_BYTES) rest = Buffer.concat([rest, chunk]).subarray(0, MOST_BYTES + 1);
      continue;
    }
    const first = chunk.indexOf(LINE_BREAK);
    const lines = [lineOf(Buffer.concat([rest, chunk.subarray(0, first)]))];
    if (end > first) {
      for (const line of chunk.toString('utf8', first + 1, end).split('\n'))
        lines.push(line.length > MOST_BYTES ? line.slice(0, MOST_BYTES) : line);
    }
    // A copy: a part of it would keep the whole chunk in memory.
    rest = Buffer.from(chunk.subarray(end + 1));
    yield lines;
  }
  if (rest.length > 0) yield [lineOf(rest)];
}

function lineOf(bytes: Buffer): string {
  return bytes.toString('utf8', 0, Math.min(bytes.length, MOST_BYTES));
}
