/** What a {@link Line} notes of one who may stand in it; nobody else writes it. */
export class Place<Member> {
  before: Member | undefined;
  behind: Member | undefined;
  taken = false;
}

/** One who may stand in a line. */
export interface InLine<Member> {
  /** Those of a higher one stand in front. */
  readonly priority: number;
  readonly place: Place<Member>;
}

/**
 * Those who wait, by priority and within one in order of arrival. Whoever stands anywhere leaves in one step, and those
 * left are seen in one step each: of a `Set` whose first members have left every look at the first passes over their gaps.
 */
export class Line<Member extends InLine<Member>> implements Iterable<Member> {
  size = 0;
  #first: Member | undefined;
  #last: Member | undefined;

  get first(): Member | undefined {
    return this.#first;
  }

  /** From the front. Who leaves meanwhile is not met any more. */
  *[Symbol.iterator](): Generator<Member> {
    for (let one = this.#first; one; one = one.place.behind) if (one.place.taken) yield one;
  }

  /** Those who stand behind one of this priority that comes now, from the back. */
  *below(priority: number): Generator<Member> {
    for (let one = this.#last; one && one.priority < priority; one = one.place.before) yield one;
  }

  add(member: Member): void {
    let before = this.#last;
    for (const one of this.below(member.priority)) before = one.place.before;
    const behind = before ? before.place.behind : this.#first;
    Object.assign(member.place, { before, behind, taken: true });
    if (before) before.place.behind = member;
    else this.#first = member;
    if (behind) behind.place.before = member;
    else this.#last = member;
    this.size += 1;
  }

  /** Answers whether it was there. */
  delete({ place }: Member): boolean {
    if (!place.taken) return false;
    const { before, behind } = place;
    if (before) before.place.behind = behind;
    else this.#first = behind;
    if (behind) behind.place.before = before;
    else this.#last = before;
    // Whoever looks at this one now still finds those behind it.
    place.before = undefined;
    place.taken = false;
    this.size -= 1;
    return true;
  }
}
