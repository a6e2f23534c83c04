import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { afterAll } from 'vitest';

const repository = resolve(import.meta.dirname, '../..');
const made: string[] = [];

/**
 * Compiles a TypeScript program of the tests, and what it imports, as it stands now, so that it can run as a process of
 * its own. Kept for all tests of the file.
 *
 * @returns the path of the program for `node`
 */
export function compiledProgram(path: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'peersync-program-'));
  made.push(directory);
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  symlinkSync(join(repository, 'node_modules'), join(directory, 'node_modules'));
  const target = ['--target', 'es2023', '--module', 'nodenext', '--types', 'node'];
  const quickly = ['--ignoreConfig', '--noCheck', '--skipLibCheck'];
  const places = ['--rootDir', '.', '--outDir', directory];
  const tsc = join(repository, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [tsc, ...quickly, ...target, ...places, path], { cwd: repository });
  return join(directory, relative(repository, path).replace(/\.ts$/, '.js'));
}

afterAll(() => {
  for (const directory of made.splice(0)) rmSync(directory, { recursive: true, force: true });
});
