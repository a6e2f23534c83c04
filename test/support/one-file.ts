import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'rolldown';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The command line that the tests of programs start. */
    readonly cli?: string;
  }
}

const ROOT = resolve(import.meta.dirname, '../..');
const DIST = join(ROOT, 'dist');

/**
 * Puts what is built into few files, once for all tests of a run. Programs are started a thousand times there, and most of a
 * start is to find and load some hundred modules: a third of the processor time of these tests. What is shipped is what
 * `dist` holds, and is started as it is by the tests of the package, of a booted system and of the first use.
 */
export async function setup(project: TestProject): Promise<() => void> {
  mkdirSync(join(ROOT, '.programs'), { recursive: true });
  // Inside of the project, so that libraries which stay outside of the files are found.
  const home = mkdtempSync(join(ROOT, '.programs', 'run-'));
  const programs = join(home, 'dist/programs');
  await build({
    input: {
      'programs/cli': join(DIST, 'cli.js'),
      'programs/worker': join(DIST, 'embedded/worker.js'),
      'file-thread': join(DIST, 'file-thread.js'),
    },
    platform: 'node',
    logLevel: 'warn',
    // It finds its WebAssembly beside itself.
    external: ['node-sqlite3-wasm'],
    output: {
      dir: join(home, 'dist'),
      entryFileNames: '[name].js',
      chunkFileNames: 'programs/[name]-[hash].js',
    },
  });
  // Each finds these where they are from a module in a directory of `dist`.
  copyFileSync(join(ROOT, 'package.json'), join(home, 'package.json'));
  copyFileSync(join(DIST, 'build.json'), join(home, 'dist/build.json'));
  cpSync(join(DIST, 'page/browser'), join(programs, 'browser'), { recursive: true });
  cpSync(join(ROOT, 'systemd'), join(home, 'systemd'), { recursive: true });
  project.provide('cli', join(programs, 'cli.js'));
  return () => rmSync(home, { recursive: true, force: true });
}
