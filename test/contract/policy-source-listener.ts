import type { PolicyDocument } from '../../src/policy/policy.js';
import type { PolicyListener, PolicyUpdate } from '../../src/policy/policy-source.js';

/** Remembers all that a source told it. */
export class RecordingListener implements PolicyListener {
  readonly updates: PolicyUpdate[] = [];
  readonly troubles: Error[] = [];

  update(update: PolicyUpdate): void {
    this.updates.push(update);
  }

  trouble(error: Error): void {
    this.troubles.push(error);
  }

  /** The update with the highest version that came under `name`, by the bucket rather than by a hint where both did. */
  newest(name: string): PolicyUpdate | undefined {
    const version = this.version(name);
    const updates = this.updates.filter((update) => update.name === name && versionOf(update) === version);
    return updates.find(({ via }) => via !== 'hint') ?? updates[0];
  }

  /** The first update of that version, by whichever road. */
  first(name: string, version: number): PolicyUpdate | undefined {
    return this.updates.find((update) => update.name === name && versionOf(update) === version);
  }

  /** The highest version that came under `name`; −1 for none. */
  version(name: string): number {
    return Math.max(-1, ...this.updates.filter((update) => update.name === name).map(versionOf));
  }

  /** Whether some trouble had this in its message. */
  heard(text: string): boolean {
    return this.troubles.some(({ message }) => message.includes(text));
  }
}

function versionOf({ document }: PolicyUpdate): number {
  return (Object(document) as PolicyDocument).version ?? -1;
}
