import { PolicyConflictError } from '../errors.js';

/** The error of a publish that another one has overtaken. */
export function conflict(name: string, expected: number, stored: number): PolicyConflictError {
  const state = (version: number): string => (version === 0 ? 'not stored' : `stored in version ${version}`);
  return new PolicyConflictError(
    `Expected policy "${name}" to be ${state(expected)}, found it ${state(stored)}: read it again and retry.`,
  );
}
