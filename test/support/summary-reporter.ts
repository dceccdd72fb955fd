import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Prints one last plain line, `N passed, N failed, N skipped`, for CI logs that read totals. */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    const count = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) {
      let cases = 0;
      for (const test of module.children.allTests()) {
        count[test.result().state] += 1;
        cases += 1;
      }
      // A file that failed to load has no tests of its own to count.
      if (cases === 0 && module.state() === 'failed') count.failed += 1;
    }
    const failed = count.failed + count.pending + errors.length;
    process.on('exit', () => {
      process.stdout.write(`\n${count.passed} passed, ${failed} failed, ${count.skipped} skipped\n`);
    });
  }
}
