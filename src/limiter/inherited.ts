import type { Policy } from '../policy/policy.js';

/** The inheritance rules of `Inheritance`, for a local bucket; `reset` here is a full one. */
export function inherited(policy: Policy, held: number, fromBurst: number, toBurst: number): number {
  switch (policy.inheritance) {
    case 'proportional':
      return (held / fromBurst) * toBurst;
    case 'additive':
      return held + toBurst - fromBurst;
    case 'reset':
      return toBurst;
    case 'as-is':
      return held;
  }
}
