import { expect, test } from 'vitest';
import { CeilingError } from '../../../src/errors.js';
import { errorType } from '../../../src/telemetry/error-type.js';

class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

test.each<[string, unknown, string]>([
  ['the code of ours', new CeilingError('No reply in time.'), 'HEADGATE_CEILING'],
  ['the code of its cause', new CeilingError('x', { cause: withCode('ECONNREFUSED') }), 'ECONNREFUSED'],
  [
    "the server's code of an error reply",
    new CeilingError('x', { cause: new ReplyError('OOM command not allowed') }),
    'OOM',
  ],
  ['a code that is the whole reply', new ReplyError('NOSCRIPT'), 'NOSCRIPT'],
  ['the class of an error reply without a code', new ReplyError('tenant-1 is wrong'), 'ReplyError'],
  ['the class of an error without a code', new CeilingError('x', { cause: new RangeError('y') }), 'RangeError'],
  ['what wraps a plain error', new CeilingError('x', { cause: new Error('y') }), 'HEADGATE_CEILING'],
  ['a plain error', new Error('tenant-1'), 'Error'],
  ['a code that is no word', withCode('tenant-1 is wrong'), 'Error'],
  ['a code that is a number', withCode(10071), 'Error'],
  ['a name that is no word', Object.assign(new Error('x'), { name: 'tenant-1 is wrong' }), '_OTHER'],
  ['no error', undefined, '_OTHER'],
  ['a string', 'tenant-1', '_OTHER'],
  ['a circle of causes', circle(), 'HEADGATE_CEILING'],
])('the type of an error is %s', (_what, error, type) => {
  expect(errorType(error)).toBe(type);
});

function withCode(code: unknown): Error {
  return Object.assign(new Error('tenant-1'), { code });
}

function circle(): Error {
  const error = new CeilingError('x');
  error.cause = error;
  return error;
}
