import { HeadgateError } from '../errors.js';
import type { Time } from '../time.js';
import { diagnosticsObserver } from './diagnostics.js';
import { type Observer, silentObserver } from './observer.js';

/** Who is to hear of what a limiter does. */
export interface Audience {
  readonly instanceId: string;
  /** Of this package, for instruments. */
  readonly version: string;
  readonly time: Time | undefined;
  /** Hears everything in place of OpenTelemetry. */
  readonly observer: Observer | undefined;
  readonly telemetry: boolean | undefined;
  readonly onTrouble: ((error: Error) => void) | undefined;
}

/** One observer for all of them, which never throws. */
export async function composeObserver(audience: Audience): Promise<Observer> {
  const observed = diagnosticsObserver(await chosenObserver(audience), audience.instanceId);
  const people = await chosenListener(audience);
  return {
    ...observed,
    trouble(error) {
      observed.trouble(error);
      people.trouble(error);
    },
  };
}

async function chosenObserver({ observer, telemetry, time, version }: Audience): Promise<Observer> {
  if (observer) return guarded(observer);
  if (telemetry === false) return silentObserver;
  const { loadOpenTelemetry, openTelemetryObserver } = await import('./open-telemetry.js');
  const api = await loadOpenTelemetry();
  return api ? openTelemetryObserver(api, { version, ...(time && { time }) }) : silentObserver;
}

/** Who is told of trouble besides. */
async function chosenListener({ onTrouble }: Audience): Promise<Pick<Observer, 'trouble'>> {
  return onTrouble ? guarded({ ...silentObserver, trouble: onTrouble }) : { trouble: warnOnce() };
}

/** Loaded only where somebody else's code is called. */
async function guarded(observer: Observer): Promise<Observer> {
  return (await import('./guarded-observer.js')).guardedObserver(observer);
}

/** Shows each message once as a warning of the process, where there is one. */
function warnOnce(): (error: Error) => void {
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
