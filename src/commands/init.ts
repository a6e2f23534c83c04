import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { jsonSchema } from '../config/schema.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { PACKAGE_ROOT } from '../lib/process.js';
import { answer, define, print } from './context.js';

/** The configuration that `peersync init` writes: what one usually changes, the rest left to its default. */
export const EXAMPLE_FILE = join(PACKAGE_ROOT, 'config.example.json');

/** Writes a first configuration, never over another one. */
export const initCommand = define({
  examples: [
    ['$0 init', 'Write ./config.json'],
    ['$0 init -c /etc/peersync/config.json', 'Write it elsewhere'],
  ],
  run: async (options) => {
    const path = resolve(options.config);
    try {
      await writeFile(path, await readFile(EXAMPLE_FILE), { flag: 'wx', mode: 0o644 });
    } catch (error) {
      const exists = systemCode(error) === 'EEXIST';
      const where = 'name another file with --config.';
      throw new PeersyncError({
        code: exists ? 'CONFIG_EXISTS' : 'CONFIG_UNWRITABLE',
        message: exists ? `${path} is there already.` : `${path} could not be written: ${messageOf(error)}.`,
        hint: exists ? `It was left as it is; move it away, or ${where}` : `Check the directory, or ${where}`,
        exitCode: EXIT.usage,
        cause: error,
      });
    }
    return answer(options, { path }, () => [
      `Wrote ${path}.`,
      'Set the path and collection of your folder there; the README explains every option.',
      'Set its url to where people can open the files, or remove it: it names the documents for ever.',
      `Then try \`peersync check -c ${options.config}\` and \`peersync run -c ${options.config}\`.`,
    ]);
  },
});

/** The JSON Schema of the configuration, for editors. */
export const schemaCommand = define({
  examples: [
    ['$0 schema > config.schema.json', 'Then add "$schema": "./config.schema.json" to the configuration'],
  ],
  run: async () => {
    print(JSON.stringify(jsonSchema(), null, 2));
    return EXIT.done;
  },
});
