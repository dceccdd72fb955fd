import { PolicySourceError } from '../errors.js';
import type { Policy } from './policy.js';
import type { PolicySource } from './policy-source.js';

/** Policies as given in code: nobody can publish, nothing ever changes. */
export function staticPolicySource(policies: readonly Policy[]): PolicySource {
  return {
    async watch(listener) {
      for (const { name, document } of policies) listener.update({ name, document, via: 'snapshot' });
    },
    async list() {
      return policies.map(({ document }) => document);
    },
    async publish({ name }) {
      throw new PolicySourceError(
        `Expected a policy source that can be written, got policies given in code: can't publish "${name}". ` +
          'Give the limiter `nats`, or a source such as memoryPolicySource().',
      );
    },
    async close() {},
  };
}
