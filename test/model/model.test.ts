import { describe, expect, it } from 'vitest';
import { search } from './search.js';

const LONGEST = { timeout: 180_000 };

/** Histories of the ledger, all of them; `ledger.pml` says what they consist of and what is claimed. */
const fleets = [
  { of: 'two instances', options: [] },
  { of: 'two instances under a policy that tightens', options: ['-DPOLICY', '-DLEASE=1'] },
  { of: 'two instances that crash and come back', options: ['-DCRASH', '-DLEASE=1', '-DBURST=1'] },
];

/** Rules that the model can do without, each in a way of its own; the smallest fleet that shows it. */
const mutants = [
  { mutant: 11, rule: '1', without: 'T capped by B − O' },
  { mutant: 21, rule: '2', without: 'repeats answered from the record' },
  { mutant: 22, rule: '2', without: 'older calls changing nothing' },
  { mutant: 23, rule: '2', without: 'one counter that never restarts' },
  { mutant: 31, rule: '3', without: 'a new identity after a crash', options: ['-DCRASH', '-DLEASE=1', '-DBURST=1'] },
  { mutant: 41, rule: '4', without: 'late replies ignored' },
  { mutant: 42, rule: '4', without: 'an explicit disown' },
  { mutant: 43, rule: '4', without: 'taking back only what a call that was given up has granted' },
  { mutant: 44, rule: '4', without: 'taking what is returned out of the wallet, for good' },
  { mutant: 45, rule: '4', without: 'taking back at most what is outstanding' },
  { mutant: 51, rule: '5', without: 'the lease looked at when a token is spent' },
  { mutant: 52, rule: '5', without: 'the lease counted from before the call was sent' },
  { mutant: 61, rule: '6', without: 'dead tokens dropped at a deposit' },
  { mutant: 62, rule: '6', without: 'refusing what was sent under a lease that has ended since' },
  { mutant: 71, rule: '7', without: 'the age limit', options: ['-DBURST=1', '-DLEASE=1'] },
  { mutant: 72, rule: '7', without: 'records that outlive their lease' },
  { mutant: 81, rule: '8', without: 'refill before lease ends' },
  { mutant: 91, rule: '9', without: 'a fence that outlives the bucket', options: ['-DPOLICY', '-DLEASE=1'] },
  { mutant: 101, rule: '10', without: 'repeats that change nothing' },
  { mutant: 111, rule: '11', without: 'a key that outlives its leases' },
  { mutant: 131, rule: 'lease end', without: 'counting a lease that ends as spent' },
  { mutant: 132, rule: 'lease end', without: 'ending leases at all: the fleet is denied for ever' },
];

describe('every history of the ledger keeps the claims', () => {
  for (const { of, options } of fleets)
    it(`of ${of}`, LONGEST, async () => {
      expect(await search(...options)).toMatchObject({ errors: 0, complete: true, trail: false });
    });
});

describe('and some history does not', () => {
  for (const { mutant, rule, without, options = [] } of mutants)
    it(`rule ${rule}: without ${without}`, LONGEST, async () => {
      expect(await search(`-DMUTANT=${mutant}`, ...options)).toMatchObject({ errors: 1, trail: true });
    });
});
