import { stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { UsageError } from '../cli/usage.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { isWithin } from '../lib/text.js';

/** Writes a first configuration that can be run as it is. It never overwrites a file. */
export const initCommand = define({
  positionals: { folder: option.value('The folder to watch; ./data/inbox unless given') },
  output: z.object({ path: z.string(), folder: z.string(), collection: z.string() }),
  examples: [
    ['$0 init ~/notes', 'Write ./config.json for the folder ~/notes'],
    ['$0 init -c /etc/peersync/config.json', 'Write it elsewhere'],
  ],
  run: async (options) => {
    const path = writtenPath(options.config);
    const folder = options.folder === undefined ? './data/inbox' : writtenPath(options.folder);
    const isThere = await toBeWatched(resolve(dirname(path), folder), join(dirname(path), 'data'));
    const collection = basename(folder).replace(/[^\p{L}\p{M}\p{N}\-_.]+/gu, '-') || 'files';
    const config = { peer: { url: 'embedded' }, folders: [{ path: folder, collection }] };
    try {
      await writeFile(path, `${JSON.stringify(config, null, 2)}\n`, { flag: 'wx', mode: 0o644 });
    } catch (cause) {
      const exists = systemCode(cause) === 'EEXIST';
      throw new PeersyncError({
        code: exists ? 'CONFIG_EXISTS' : 'CONFIG_UNWRITABLE',
        message: exists
          ? `${path} is there already.`
          : `${path} could not be written: ${messageOf(cause)}.`,
        hint: exists
          ? 'Nothing was changed. Add the folder to `folders` there, or name another file with --config.'
          : 'Nothing was changed; name another file with --config.',
        exitCode: EXIT.usage,
        cause,
      });
    }
    return answer(options, { path, folder, collection }, () => [
      `Wrote ${path}: the folder ${folder} goes into the collection "${collection}" of the embedded peer.`,
      'Documents are named by file:// URLs. Where people open the files at another address, set `url` of the',
      'folder to it before the first run: it names the documents for ever. `peersync schema` explains every option.',
      ...(isThere
        ? []
        : ['The folder does not exist yet: create it, or start with `peersync run --create`.']),
      'Then try `peersync check` and `peersync run`.',
    ]);
  },
});

/**
 * Checks that a folder can be watched.
 *
 * @param data the directory where peersync keeps its own files by default
 * @returns whether the folder exists
 * @throws UsageError
 */
async function toBeWatched(folder: string, data: string): Promise<boolean> {
  if (isWithin(data, folder))
    throw new UsageError(
      `${folder} holds ${data}, where peersync keeps its own files.`,
      'Name a configuration outside of the folder with --config: they stand beside it.',
    );
  const found = await stat(folder).catch(() => undefined);
  if (found !== undefined && !found.isDirectory())
    throw new UsageError(`${folder} is no directory.`, 'Name the directory that holds it.');
  return found !== undefined;
}
