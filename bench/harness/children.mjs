import { fork } from 'node:child_process';
import { once } from 'node:events';
import { atEnd } from './at-end.mjs';

/**
 * A process of its own for one contender. It does nothing but answer `ask`; between two questions it can be frozen, so
 * that its timers do not run while another is measured.
 */
export class Child {
  #process;
  #frozen = false;
  #callOff;

  /** @param nodeArguments for node itself, e.g. `['--expose-gc']` */
  constructor(file, args, nodeArguments = []) {
    this.#process = fork(file, args, {
      execArgv: nodeArguments,
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    // A frozen one would not even notice that its parent has gone.
    this.#callOff = atEnd(() => this.#process.kill('SIGKILL'));
  }

  get pid() {
    return this.#process.pid;
  }

  /** Sends a question; answers what the child answers. */
  async ask(question) {
    this.thaw();
    const child = this.#process;
    return await new Promise((resolve, reject) => {
      const gone = (code, signal) => reject(new Error(`A child ended with ${code ?? signal} instead of answering.`));
      child.once('exit', gone);
      child.once('message', (answer) => {
        child.removeListener('exit', gone);
        if (answer?.error) reject(new Error(answer.error));
        else resolve(answer);
      });
      child.send(question);
    });
  }

  freeze() {
    if (this.#frozen) return;
    this.#process.kill('SIGSTOP');
    this.#frozen = true;
  }

  thaw() {
    if (!this.#frozen) return;
    this.#process.kill('SIGCONT');
    this.#frozen = false;
  }

  async end() {
    this.#callOff();
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const gone = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await gone;
  }
}

/** The other side: answers each question by `answer(question)`. */
export function serve(answer) {
  process.on('message', async (question) => {
    try {
      process.send(await answer(question));
    } catch (error) {
      process.send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    }
  });
  process.on('disconnect', () => process.exit());
  // A terminal sends it to all; the parent still has to say what was measured, and ends its children itself.
  process.on('SIGINT', () => {});
}
