import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Prints one last plain line, `N passed, N failed, N skipped`, for CI logs that read totals. */
export default class SummaryReporter implements Reporter {
  readonly #count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
  #errors = 0;

  onInit(): void {
    process.on('exit', (exitCode) => {
      const { passed, failed, pending, skipped } = this.#count;
      const counted = failed + pending + this.#errors;
      // A run that ended before its tests (no server, no file) has failed all the same.
      const total = counted === 0 && exitCode !== 0 ? 1 : counted;
      process.stdout.write(`\n${passed} passed, ${total} failed, ${skipped} skipped\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    this.#errors = errors.length;
    Object.assign(this.#count, { passed: 0, failed: 0, skipped: 0, pending: 0 });
    for (const module of modules) {
      let cases = 0;
      for (const test of module.children.allTests()) {
        this.#count[test.result().state] += 1;
        cases += 1;
      }
      // A file that failed to load has no tests of its own to count.
      if (cases === 0 && module.state() === 'failed') this.#count.failed += 1;
    }
  }
}
