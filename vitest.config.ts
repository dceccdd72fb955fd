import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/support/summary-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: [
            'test/unit/**/*.test.ts',
            'test/property/**/*.test.ts',
            'test/contract/**/*.test.ts',
            'test/repository/**/*.test.ts',
            'test/mutation/**/*.test.ts',
            'test/model/**/*.test.ts',
          ],
        },
      },
      {
        test: {
          name: 'integration',
          include: [
            'test/integration/**/*.test.ts',
            'test/examples/**/*.test.ts',
            'test/chaos/**/*.test.ts',
            'test/lua/**/*.test.ts',
          ],
          globalSetup: ['./test/support/global-setup.ts'],
          // The files share one Redis and one NATS server, and freeze or kill servers of their own: side by side on few
          // cores they would fail each other's deadlines.
          fileParallelism: false,
          // The same of fleets of processes: as many play side by side as mostly wait.
          maxConcurrency: 3,
          testTimeout: 20_000,
          hookTimeout: 20_000,
        },
      },
    ],
  },
});
