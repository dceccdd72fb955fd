import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type InLine, Line, Place } from '../../src/line.js';

interface Person extends InLine<Person> {
  readonly name: number;
}

const person = (name: number, priority = 0): Person => ({ name, priority, place: new Place() });
const names = (line: Iterable<Person>): number[] => [...line].map(({ name }) => name);

describe('a line', () => {
  it('is that of a list that is sorted by priority and arrival, whoever comes and goes', () => {
    const step = fc.oneof(
      fc.record({ comes: fc.integer({ min: -2, max: 2 }) }),
      fc.record({ goes: fc.nat({ max: 20 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = new Line<Person>();
        let model: Person[] = [];
        const all: Person[] = [];
        for (const one of steps) {
          if ('comes' in one) {
            const newcomer = person(all.length, one.comes);
            all.push(newcomer);
            expect(names(line.below(one.comes))).toEqual(names(model.filter((p) => p.priority < one.comes)).reverse());
            line.add(newcomer);
            const front = model.filter(({ priority }) => priority >= one.comes);
            model = [...front, newcomer, ...model.filter(({ priority }) => priority < one.comes)];
          } else {
            const leaver = all[one.goes];
            if (leaver) expect(line.delete(leaver)).toBe(model.includes(leaver));
            model = model.filter((p) => p !== leaver);
          }
          expect(names(line)).toEqual(names(model));
          expect([line.size, line.first]).toEqual([model.length, model[0]]);
        }
      }),
    );
  });

  it('can be walked while those in it leave, whoever that is', () => {
    const people = [0, 1, 2, 3, 4, 5].map((name) => person(name));
    const line = new Line<Person>();
    for (const one of people) line.add(one);
    const met: number[] = [];
    for (const one of line) {
      met.push(one.name);
      line.delete(one);
      if (one.name === 1) for (const other of [2, 4]) line.delete(people[other] as Person);
    }
    expect(met).toEqual([0, 1, 3, 5]);
    expect(line.size).toBe(0);
  });
});
