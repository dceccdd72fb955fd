import { describe, expect, it } from 'vitest';
import { accessLineParser, jsonLineParser, type RequestFields, requestReader } from '../../../src/replay/index.js';

const fields = (more: Partial<RequestFields> = {}): RequestFields => ({
  key: 'address',
  keyField: 'address',
  costField: undefined,
  prefix4: 24,
  prefix6: 64,
  ...more,
});
const AT = 1_431_857_103_000_000;
const access = (more?: Partial<RequestFields>) => requestReader(accessLineParser(), fields(more));
const json = (more?: Partial<RequestFields>) => requestReader(jsonLineParser('time'), fields(more));
const line = (address: string, request = 'GET /a/b?c=d HTTP/1.1', rest = ' 200 1234 "-" "curl/8"') =>
  `${address} - - [17/May/2015:10:05:03 +0000] "${request}"${rest}`;

describe('a line of an access log', () => {
  it('is read in combined and in common format, and with the request line alone', () => {
    for (const rest of [' 200 1234 "-" "curl/8"', ' 200 1234', ''])
      expect(access()(line('192.0.2.7', undefined, rest))).toEqual({ at: AT, key: '192.0.2.7', cost: 1 });
  });

  it('may be by a user with spaces and brackets in the name, for something with quotes in it', () => {
    const odd = String.raw`192.0.2.7 - a [b] c [17/May/2015:10:05:03 +0000] "GET /\"x\" HTTP/1.1" 404 - "-" "\"]"`;
    expect(access({ key: 'field', keyField: 'user' })(odd)).toMatchObject({ key: 'a [b] c' });
    expect(access({ key: 'field', keyField: 'status' })(odd)).toMatchObject({ key: '404' });
    expect(access({ key: 'field', keyField: 'agent' })(odd)).toMatchObject({ key: String.raw`\"]` });
    expect(access({ key: 'path', keyField: 'path' })(odd)).toMatchObject({ key: String.raw`/\"x\"` });
  });

  it.each([
    ['192.0.2.7', 24, 64, '192.0.2.0/24'],
    ['::ffff:192.0.2.7', 16, 64, '192.0.0.0/16'],
    ['2001:DB8:0:1:2::3', 24, 64, '2001:db8:0:1::/64'],
    ['2001:db8:0:1:2::3', 24, 48, '2001:db8::/48'],
  ])('from %s has for IPv4 /%i and IPv6 /%i the key %s', (address, prefix4, prefix6, key) => {
    expect(access({ key: 'prefix', prefix4, prefix6 })(line(address))).toMatchObject({ key });
  });

  it.each([
    ['GET /a/b?c=d HTTP/1.1', '/a/b'],
    ['GET http://example.org HTTP/1.1', '/'],
    ['GET http://example.org/x#y HTTP/1.1', '/x'],
  ])('asking for %j is about %s', (request, key) => {
    expect(access({ key: 'path', keyField: 'path' })(line('192.0.2.7', request))).toMatchObject({ key });
  });

  it.each([
    ['not a log line', 'not in common or combined log format'],
    [line('192.0.2.7').replace('May', 'Mai'), 'no time in "[17/Mai/2015:10:05:03 +0000]"'],
    [line('example.org'), 'no address in its field "address"'],
  ])('is told to be malformed: %j', (text, reason) => {
    expect(access()(text)).toBe(reason);
  });

  it('asks for no path where the request is garbage, as of a port scanner', () => {
    expect(access({ key: 'path', keyField: 'path' })(line('192.0.2.7', String.raw`\x16\x03\x01`))).toBe(
      'no path in its field "path"',
    );
  });
});

describe('a line of JSON', () => {
  it('has the key and the cost in fields, of its own or within objects', () => {
    const text = '{"time": 1431857103, "client": {"address": "192.0.2.7"}, "a.b": "c", "units": 2.5}';
    expect(json({ keyField: 'client.address' })(text)).toEqual({ at: AT, key: '192.0.2.7', cost: 1 });
    expect(json({ key: 'field', keyField: 'a.b', costField: 'units' })(text)).toEqual({ at: AT, key: 'c', cost: 2.5 });
    expect(json({ key: 'all' })(text)).toMatchObject({ key: 'all' });
  });

  it.each([
    ['{', 'not JSON'],
    ['[1]', 'not a JSON object'],
    ['{"t": 1}', 'no time in its field "time"'],
    ['{"time": 1431857103}', 'no text in its field "user"'],
    ['{"time": 1431857103, "user": {}}', 'no text in its field "user"'],
    [`{"time": 1431857103, "user": "${'ä'.repeat(257)}"}`, 'a key of more than 512 bytes'],
    ['{"time": 1431857103, "user": "u", "units": 0}', 'no cost (positive, at most 6 decimals) in its field "units"'],
    [
      '{"time": 1431857103, "user": "u", "units": 0.0000001}',
      'no cost (positive, at most 6 decimals) in its field "units"',
    ],
    ['{"time": 1431857103, "user": "u"}', 'no cost (positive, at most 6 decimals) in its field "units"'],
  ])('is told to be malformed: %j', (text, reason) => {
    expect(json({ key: 'field', keyField: 'user', costField: 'units' })(text)).toBe(reason);
  });
});
