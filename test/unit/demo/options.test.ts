import { describe, expect, it } from 'vitest';
import { readOptions } from '../../../src/demo/options.js';
import { UsageError } from '../../../src/terminal/flags.js';

describe('readOptions', () => {
  it('has defaults, and takes each option', () => {
    expect(readOptions([])).toMatchObject({ instances: 8, seconds: 10, json: false, help: false });
    const args = [
      '--instances',
      '3',
      '--seconds=4',
      '--rate',
      '50.5',
      '--burst',
      '20',
      '--redis',
      'redis://h:1',
      '--json',
    ];
    expect(readOptions(args)).toMatchObject({
      instances: 3,
      seconds: 4,
      rate: 50.5,
      burst: 20,
      redis: 'redis://h:1',
      json: true,
    });
  });

  it.each([
    [['--instances', '0'], 'Expected --instances to be a number from 1 to 64, got "0".'],
    [['--instances', '2.5'], 'Expected --instances to be a whole number, got "2.5".'],
    [['--seconds', 'ten'], 'Expected --seconds to be a number from 2 to 600, got "ten".'],
    [['--rate', '1e3'], 'Expected --rate to be a number from 1 to 1000000, got "1e3".'],
    [['--redis', 'localhost'], 'Expected --redis to be a URL that begins with redis://, got "localhost".'],
    [['--nats', 'http://h'], 'Expected --nats to be a URL that begins with nats://, got "http://h".'],
    [['--report', ''], 'Expected --report to be the name of a file, got "".'],
    [['--speed', '2'], 'Expected --speed together with --replay, got it alone.'],
    [['--replay', 'x.log', '--redis', 'redis://h'], 'Expected --replay without --redis, got both.'],
    [['--wat'], "Unknown option '--wat'"],
    [['10'], "Unexpected argument '10'"],
  ])('refuses %j', (args, message) => {
    expect(() => readOptions(args)).toThrow(UsageError);
    expect(() => readOptions(args)).toThrow(message);
  });
});
