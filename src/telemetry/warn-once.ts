import { HeadgateError } from '../errors.js';

/** Shows each message once as a warning of the process, where there is one. */
export function warnOnce(): (error: Error) => void {
  const shown = new Set<string>();
  return (error) => {
    if (shown.has(error.message)) return;
    shown.add(error.message);
    globalThis.process?.emitWarning?.(error.message, {
      type: 'HeadgateWarning',
      ...(error instanceof HeadgateError && { code: error.code }),
    });
  };
}
