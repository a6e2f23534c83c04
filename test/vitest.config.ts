import { existsSync, statfsSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Tests that take minutes: kills, hostile peers, full disks, systemd, a browser. */
const LONG = [
  'test/fault/**/*.test.ts',
  'test/browser/**/*.test.ts',
  'test/systemd/boot.test.ts',
  'test/e2e/corpus.test.ts',
  'test/e2e/full-state-disk.test.ts',
  'test/e2e/package.test.ts',
  'test/e2e/state-lost.test.ts',
  'test/e2e/wall-clock.test.ts',
  'test/wire/yacy-losses.test.ts',
  'test/wire/yacy-moments.test.ts',
  'test/wire/yacy-poison.test.ts',
];

/** Files that take longest begin first, so that nothing waits for them at the end. */
const SLOWEST =
  /corpus|hostile-programs|scan-kill|directory-swap|bombs|mirror-kill|boot|wall-clock|fault.fleet/;

class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification) => SLOWEST.test(moduleId);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

/** Other tests that start whole programs. */
const PROGRAMS = ['test/e2e/**/*.test.ts', 'test/wire/**/*.test.ts', 'test/systemd/**/*.test.ts'];

/** A load of any duration; see test/soak/soak.mjs. */
const SOAK = ['test/soak/**/*.test.ts'];

/** Limits for a test that hangs, in ms. They are generous, because a slow machine starts slowly. */
const SLOW = { testTimeout: 240_000, hookTimeout: 240_000 };

/** A file system in memory on Linux. */
const MEMORY = '/dev/shm';
const ROOM_BYTES = 4 * 2 ** 30;

/** The tests of parts write to memory if there is room: on a disk they wait most of their time. */
function partsEnvironment(): Record<string, string> {
  if (process.env.TMPDIR !== undefined || !existsSync(MEMORY)) return {};
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > ROOM_BYTES ? { TMPDIR: MEMORY } : {};
}

/** Tests of parts that use the database of the embedded peer. */
const DATABASE = ['test/embedded/**/*.test.ts'];

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '..'),
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'forks',
    // Most of the time is spent waiting for processes, files and sockets.
    maxWorkers: 4,
    sequence: { sequencer: SlowestFirst },
    setupFiles: ['test/support/lives.ts'],
    // The programs that tests start must not see that npm started the tests.
    env: { npm_execpath: '' },
    projects: [
      { extends: true, test: { name: 'long', include: LONG, ...SLOW } },
      { extends: true, test: { name: 'soak', include: SOAK, testTimeout: 0 } },
      { extends: true, test: { name: 'programs', include: PROGRAMS, exclude: LONG, ...SLOW } },
      {
        extends: true,
        test: {
          name: 'parts',
          include: ['test/**/*.test.ts'],
          exclude: [...PROGRAMS, ...LONG, ...SOAK],
          // A process and a module for each file would cost more than most tests do.
          isolate: false,
          env: partsEnvironment(),
        },
      },
      // The project `parts` uses the driver of this Node. This one uses the other one, too.
      ...(isBuiltin('node:sqlite')
        ? [
            {
              extends: true as const,
              test: {
                name: 'parts-wasm',
                include: DATABASE,
                isolate: false,
                env: { ...partsEnvironment(), TEST_DRIVER: 'node-sqlite3-wasm' },
              },
            },
          ]
        : []),
    ],
  },
});
