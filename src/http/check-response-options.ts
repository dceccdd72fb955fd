import { InvalidOptionError, show } from '../errors.js';
import { HEADER_DIALECTS, type HeaderDialect } from './dialects.js';
import type { ResponseOptions } from './limit-response.js';

/** @throws {InvalidOptionError} */
export function checkResponseOptions(options: ResponseOptions): void {
  const { headers, partition, maxRetryAfterSeconds, jitterMs } = options;
  if (headers !== undefined) checkDialects(headers);
  if (partition !== undefined && typeof partition !== 'boolean') {
    throw new InvalidOptionError(`Expected \`partition\` to be true or false, got ${show(partition)}.`);
  }
  if (maxRetryAfterSeconds !== undefined && !(Number.isSafeInteger(maxRetryAfterSeconds) && maxRetryAfterSeconds > 0)) {
    throw new InvalidOptionError(
      `Expected \`maxRetryAfterSeconds\` to be a positive whole number, got ${show(maxRetryAfterSeconds)}.`,
    );
  }
  if (jitterMs !== undefined && !(Number.isFinite(jitterMs) && jitterMs >= 0)) {
    throw new InvalidOptionError(`Expected \`jitterMs\` to be a number of ms, 0 or more, got ${show(jitterMs)}.`);
  }
}

function checkDialects(headers: HeaderDialect | readonly HeaderDialect[]): void {
  const dialects = Array.isArray(headers) ? headers : [headers];
  for (const dialect of dialects) {
    if (!HEADER_DIALECTS.includes(dialect)) {
      throw new InvalidOptionError(
        `Expected \`headers\` to be one or more of ${HEADER_DIALECTS.join(', ')}, got ${show(dialect)}.`,
      );
    }
  }
  const others = dialects.filter((dialect) => dialect !== 'legacy');
  if (new Set(others).size > 1 || new Set(dialects).size < dialects.length) {
    throw new InvalidOptionError(
      `Expected \`headers\` to be one dialect, with or without 'legacy', got ${dialects.join(' and ')}: ` +
        'they write the same fields.',
    );
  }
}
