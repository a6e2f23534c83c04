import { writeFile } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { jsonSchema } from '../config/schema.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { answer, define, print, value } from './context.js';

/** Writes a first configuration that runs as it is, never over another one. */
export const initCommand = define({
  positionals: { folder: value('The folder to watch; ./data/inbox unless given') },
  examples: [
    ['$0 init ~/notes', 'Write ./config.json for the folder ~/notes'],
    ['$0 init -c /etc/peersync/config.json', 'Write it elsewhere'],
  ],
  run: async (options) => {
    const path = resolve(options.config);
    const folder = options.folder === undefined ? './data/inbox' : resolve(options.folder);
    const collection = basename(folder).replace(/[^\p{L}\p{M}\p{N}\-_.]+/gu, '-') || 'files';
    const config = { peer: { url: 'embedded' }, folders: [{ path: folder, collection }] };
    try {
      await writeFile(path, `${JSON.stringify(config, null, 2)}\n`, { flag: 'wx', mode: 0o644 });
    } catch (cause) {
      const exists = systemCode(cause) === 'EEXIST';
      throw new PeersyncError({
        code: exists ? 'CONFIG_EXISTS' : 'CONFIG_UNWRITABLE',
        message: exists ? `${path} is there already.` : `${path} could not be written: ${messageOf(cause)}.`,
        hint: 'Nothing was changed; name another file with --config.',
        exitCode: EXIT.usage,
        cause,
      });
    }
    return answer(options, { path, folder, collection }, () => [
      `Wrote ${path}: the folder ${folder} goes into the collection "${collection}" of the embedded peer.`,
      'Documents are named by file:// URLs. Where people open the files at another address, set `url` of the',
      'folder to it before the first run: it names the documents for ever. The README explains every option.',
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
