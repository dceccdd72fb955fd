import { InstanceProcess } from './instance-process.js';

/**
 * Processes for one fleet after the other. To start one takes a third of a second of a core, which a short run has not
 * got for each of its scenarios; where there is time, every fleet gets new ones.
 */
export class ProcessPool {
  readonly #program: string;
  readonly #reuse: boolean;
  readonly #idle: InstanceProcess[] = [];

  constructor(program: string, reuse: boolean) {
    this.#program = program;
    this.#reuse = reuse;
  }

  take(): InstanceProcess {
    for (let process = this.#idle.pop(); process; process = this.#idle.pop()) if (process.isRunning) return process;
    return new InstanceProcess(this.#program);
  }

  /** Takes back one whose limiters are closed. Answers what was wrong with how it ended, where it did not stay. */
  async giveBack(process: InstanceProcess): Promise<string | undefined> {
    if (!this.#reuse) return process.letGo();
    this.#idle.push(process);
    return undefined;
  }

  /** Lets all of them end; answers what was wrong with that. */
  async close(): Promise<string[]> {
    const troubles = await Promise.all(this.#idle.splice(0).map((process) => process.letGo()));
    return troubles.filter((trouble) => trouble !== undefined);
  }
}
