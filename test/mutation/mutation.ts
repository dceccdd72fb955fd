import type { Edit } from '../support/fleet/mutants.js';
import type { Profile } from '../support/fleet/run.js';

/** A rule taken out of the product, and what notices. */
export interface Mutation {
  readonly rule: string;
  readonly without: string;
  readonly edits: readonly Edit[];
  /** Made to what it is compared with as well: another defence that would hide this one. */
  readonly given?: readonly Edit[];
  /** The history that goes over its bound, by how its name begins. */
  readonly caughtBy: string;
  /** The profile in which random fleets find it too, within a few dozen. */
  readonly foundBy?: Profile;
}

/** What was sent under a lease that has ended since is believed. */
export const UNREFUSED: Edit = {
  file: 'ceiling/ledger.ts',
  find: 'if (holds && known.leaseEnd <= now && call.sentAt',
  replace: 'if (now < 0 && call.sentAt',
};
