import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { build } from 'rolldown';
import { afterwards } from './afterwards.js';

const ROOT = resolve(import.meta.dirname, '../..');
const PACKAGE = join(ROOT, 'package.json');
/** The parts of undici that the built program has. All of it takes 35 ms more for each start. */
const UNDICI = { importer: join(ROOT, 'src/'), parts: join(ROOT, 'test/tools/undici-parts.mjs') };

/**
 * Compiles a TypeScript program of the tests, and what it imports, as it stands now, so that it can
 * run as a process of its own. It is one file, because it is started often, and to find and load
 * some hundred is most of a start. Kept for all tests of the file.
 *
 * @returns the path of the program for `node`
 */
export async function compiledProgram(path: string): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'peersync-program-'));
  afterwards('file', () => rmSync(directory, { recursive: true, force: true }));
  // The program finds its version two floors up, as what is built does.
  copyFileSync(PACKAGE, join(directory, 'package.json'));
  const file = join(directory, 'dist/program', basename(path).replace(/\.ts$/, '.js'));
  await build({
    input: path,
    platform: 'node',
    logLevel: 'warn',
    plugins: [
      {
        name: 'parts-of-undici',
        resolveId: (name, importer) =>
          name === 'undici' && importer?.startsWith(UNDICI.importer) ? UNDICI.parts : undefined,
      },
    ],
    output: { file, codeSplitting: false },
  });
  return file;
}
