import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

/** Tests that start whole programs, and take most of the time. */
const PROGRAMS = ['fault', 'systemd', 'wire', 'e2e', 'browser'];

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '..'),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Most of the time is spent waiting for processes, files and sockets.
    maxWorkers: 4,
    setupFiles: ['test/support/lives.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'programs',
          include: [`test/{${PROGRAMS.join(',')}}/**/*.test.ts`],
          // No measure of anything, but the end of what hangs: on a throttled machine a start takes seconds.
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: PROGRAMS.map((directory) => `test/${directory}/**`),
          // A process and a module for each file would cost more than most tests do.
          isolate: false,
        },
      },
    ],
  },
});
