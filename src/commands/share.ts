import { realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer, restated, writeAll } from '../cli/output.js';
import { safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { formatBytes } from '../lib/units.js';
import type { ShareQuery, ShareStream } from '../peer/share.js';
import { askPeer, nameMaxSize } from './peer.js';

const shareGet = define({
  output: z.object({
    data: z.string(),
    file: z.string(),
    bytes: z.number(),
    sha256: z.string(),
  }),
  options: {
    data: option.needed('The name of the object'),
    group: option.value('The group that it stands in, where the peer has groups; also written --c'),
    output: {
      alias: 'o',
      type: 'string',
      describe: 'The file to write, whole or not at all; the standard output unless given',
    },
    'max-size': option.preset('1 GiB', 'Refuse an object that is larger'),
  },
  examples: [
    ['$0 share get --data list.csv -o list.csv', 'Into a file'],
    ['$0 share get --data list.csv --c lists | sort', 'Of the group "lists", into a pipe'],
  ],
  run: async (options) => {
    const { data, group: c, output } = options;
    const query: ShareQuery = c === undefined ? { data } : { data, c };
    const maxBytes = option.size('--max-size', options.maxSize);
    if (options.json && output === undefined)
      throw new UsageError(
        '--json describes the object, and needs --output FILE for the object itself.',
      );
    const file = output === undefined ? undefined : await fileAt(output);
    const written = await askPeer(options, (client, signal) => {
      const write = async ({ chunks, type, lastModified }: ShareStream) => {
        if (file !== undefined)
          return { type, lastModified, ...(await save(chunks, file, signal)) };
        await writeAll(process.stdout, chunks);
        return 'shown' as const;
      };
      return client.share(query, write, { maxBytes, signal });
    }).catch(nameMaxSize);
    if (written === undefined)
      throw new PeersyncError({
        code: 'NOT_FOUND',
        message: `The peer has no shared object "${data}"${c === undefined ? '' : ` in the group "${c}"`}.`,
        hint: 'Check the name and the group (--c); upper and lower case count.',
        details: { ...query },
      });
    if (written === 'shown') return EXIT.done;
    const { bytes, lastModified, sha256, type } = written;
    return answer(options, { ...query, file, type, lastModified, bytes, sha256 }, () => [
      `Wrote ${safe(output ?? '')}: ${formatBytes(bytes)}${type === undefined ? '' : `, ${safe(type)}`}.`,
    ]);
  },
});

const shareList = define({
  output: z.object({ shares: z.array(z.string()) }),
  options: { group: option.value('Only those of this group') },
  examples: [['$0 share list --group lists', 'One a line, group before name']],
  run: async (options) => {
    const all = await askPeer(options, (client, signal) => client.shares({ signal }));
    if (all === undefined)
      throw new PeersyncError({
        code: 'NOT_FOUND',
        message: 'This peer does not list its shared objects.',
        hint: 'Name the one that you want: `peersync share get --data NAME`.',
      });
    const { group = '' } = options;
    const shares = all.filter((each) => group === '' || each.startsWith(`${group}/`));
    return answer(options, { shares }, () =>
      shares.length === 0 ? ['The peer has no such shared objects.'] : shares.map(safe),
    );
  },
});

/** Shared objects of the peer. */
export const shareCommand = define({
  commands: [
    { usage: 'list', describe: 'Name the shared objects of the peer', ...shareList },
    {
      usage: 'get',
      describe: 'Fetch one shared object, to a file or to the standard output',
      ...shareGet,
    },
  ],
});

/**
 * Returns the path to write a file to. Links are followed. Anything that is no regular file is
 * refused.
 */
async function fileAt(output: string): Promise<string> {
  const written = writtenPath(output);
  const path = await realpath(written).catch(() => written);
  const found = await stat(path).catch(() => undefined);
  if (found !== undefined && !found.isFile())
    throw new UsageError(
      `--output: ${output} is ${found.isDirectory() ? 'a directory' : 'no regular file'}.`,
      'Name a file; without --output the object goes to the standard output.',
    );
  return path;
}

async function save(chunks: ShareStream['chunks'], target: string, signal: AbortSignal) {
  const { replaceWhole } = await import('../mirror/whole-file.js');
  try {
    return await replaceWhole({ root: dirname(target), path: basename(target) }, chunks, {
      signal,
    });
  } catch (error) {
    if (!(error instanceof PeersyncError) || !error.code.startsWith('MIRROR_')) throw error;
    const code = error.code.replace('MIRROR_', 'FILE_');
    const hint =
      'Free space or make the directory writable, or name another file with --output; nothing was changed.';
    throw restated(error, { code, hint, details: { file: target } });
  }
}
