import { realpath, stat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { formatBytes } from '../lib/units.js';
import type { ShareQuery, ShareStream } from '../peer/share.js';
import { answer, define, needed, preset, restated, size, UsageError, value, writeAll } from './context.js';
import { askPeer, nameMaxSize } from './peer.js';
import { safe } from './text.js';

type Written =
  | { readonly to: 'stdout' }
  | { readonly to: 'file'; readonly share: ShareStream; readonly bytes: number; readonly sha256: string };

const shareGet = define({
  options: {
    data: needed('The name of the object'),
    group: value('The group that it stands in, where the peer has groups; also written --c'),
    output: {
      alias: 'o',
      type: 'string',
      describe: 'The file to write, whole or not at all; the standard output unless given',
    },
    'max-size': preset('1 GiB', 'Refuse an object that is larger'),
  },
  examples: [
    ['$0 share get --data list.csv -o list.csv', 'Into a file'],
    ['$0 share get --data list.csv --c lists | sort', 'Of the group "lists", into a pipe'],
  ],
  run: async (options) => {
    const query: ShareQuery = {
      data: options.data,
      ...(options.group === undefined ? {} : { c: options.group }),
    };
    const maxBytes = size('--max-size', options.maxSize);
    const { output } = options;
    if (options.json && output === undefined)
      throw new UsageError('--json tells about the object, and needs --output FILE for the object itself.');
    const target = output === undefined ? undefined : await fileAt(output);
    const written = await askPeer(options, (client, signal) =>
      client.share(
        query,
        async (share): Promise<Written> => {
          if (target !== undefined) return { to: 'file', share, ...(await save(share, target, signal)) };
          await writeAll(process.stdout, share.chunks);
          return { to: 'stdout' };
        },
        { maxBytes, signal },
      ),
    ).catch(nameMaxSize);
    if (written === undefined) throw noShare(query);
    if (written.to === 'stdout') return EXIT.done;
    const { bytes, sha256 } = written;
    const { type, lastModified } = written.share;
    return answer(options, { ...query, file: target, type, lastModified, bytes, sha256 }, () => [
      `Wrote ${safe(output ?? '')}: ${formatBytes(bytes)}${type === undefined ? '' : `, ${safe(type)}`}.`,
    ]);
  },
});

/** Shared objects of the peer. */
export const shareCommand = define({
  commands: [
    { usage: 'get', describe: 'Fetch one shared object, to a file or to the standard output', ...shareGet },
  ],
});

/** Where a file is to be written: behind links, and never in the place of what is no file. */
async function fileAt(output: string): Promise<string> {
  const path = await realpath(output).catch(() => resolve(output));
  const found = await stat(path).catch(() => undefined);
  if (found !== undefined && !found.isFile())
    throw new UsageError(
      `--output: ${output} is ${found.isDirectory() ? 'a directory' : 'no regular file'}.`,
      'Name a file; without --output the object goes to the standard output.',
    );
  return path;
}

async function save(
  share: ShareStream,
  target: string,
  signal: AbortSignal,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  const { replaceWhole } = await import('../mirror/whole-file.js');
  const spot = { root: dirname(target), path: basename(target) };
  try {
    return await replaceWhole(spot, share.chunks, { signal });
  } catch (error) {
    if (!(error instanceof PeersyncError) || !error.code.startsWith('MIRROR_')) throw error;
    const code = error.code.replace('MIRROR_', 'FILE_');
    const hint =
      'Free space or make the directory writable, or name another file with --output; nothing was changed.';
    throw restated(error, { code, hint, details: { file: target } });
  }
}

function noShare({ data, c }: ShareQuery): PeersyncError {
  return new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no shared object "${data}"${c === undefined ? '' : ` in the group "${c}"`}.`,
    hint: 'Check the name and the group (--c); upper and lower case count.',
    details: { data, ...(c === undefined ? {} : { c }) },
  });
}
