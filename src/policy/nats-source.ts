import { InvalidOptionError, show } from '../errors.js';
import type { NatsPolicySourceOptions } from './nats-policies.js';
import type { PolicySource } from './policy-source.js';

const BUCKET_NAME = /^[A-Za-z0-9_-]+$/;

/**
 * Policies in a JetStream key-value bucket: key = policy name, value = the document as JSON. The bucket is the truth,
 * and watched; the same bytes also go out at once on the subject `headgate.policy.<name>` (in a bucket of another name:
 * `headgate.<bucket>.<name>`), as a hint for watches that are behind.
 *
 * @throws InvalidOptionError where an option is not what was expected.
 */
export function natsPolicySource(options: NatsPolicySourceOptions): PolicySource {
  const { nats, bucket, timeoutMs, rereadMs } = options;
  if (typeof nats === 'string' ? nats === '' : typeof nats?.subscribe !== 'function') {
    throw new InvalidOptionError(`Expected \`nats\` to be a URL or a NATS connection, got ${show(nats)}.`);
  }
  if (bucket !== undefined && !BUCKET_NAME.test(bucket)) {
    throw new InvalidOptionError(`Expected \`bucket\` to be made of A–Z a–z 0–9 _ -, got ${show(bucket)}.`);
  }
  checkPositive('timeoutMs', timeoutMs);
  checkPositive('rereadMs', rereadMs);
  // Whoever imports this package for something else does not load what speaks to NATS.
  let loaded: Promise<PolicySource> | undefined;
  const load = (): Promise<PolicySource> => {
    loaded ??= import('./nats-policies.js').then(({ NatsPolicies }) => new NatsPolicies(options));
    return loaded;
  };
  return {
    watch: async (listener) => (await load()).watch(listener),
    list: async () => (await load()).list(),
    publish: async (document, expected, trace) => (await load()).publish(document, expected, trace),
    close: async () => (await loaded)?.close(),
  };
}

function checkPositive(option: string, value: unknown): void {
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value) && value > 0)) return;
  throw new InvalidOptionError(`Expected \`${option}\` to be a positive number of ms, got ${show(value)}.`);
}
