import { realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { z } from 'zod';
import { define, type Given } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer, restated, writeAll } from '../cli/output.js';
import { counted, named, safe, timeText } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { systemClock } from '../lib/clock.js';
import { EXIT, PeersyncError } from '../lib/errors.js';
import { writtenPath } from '../lib/home.js';
import { parseUrl } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import type { Citation, CitationOptions, CitingDocument } from '../peer/citation.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import type { ShareQuery, ShareStream } from '../peer/share.js';
import { askPeer, nameMaxSize } from './peer.js';

/** Which document a command is about. */
const DOCUMENT = {
  positionals: { url: option.value('The URL of the document (`peersync why FILE` tells it)') },
  options: { hash: option.value('The hash that the peer gave the document, in place of its URL') },
} as const;
type DocumentOptions = Given<typeof DOCUMENT.positionals> & Given<typeof DOCUMENT.options>;

/** @throws UsageError unless exactly one of the two was given */
export function documentOf({
  url,
  hash,
}: DocumentOptions): { readonly url: string } | { readonly hash: string } {
  if (url !== undefined && hash !== undefined)
    throw new UsageError('Both a URL and --hash were given.');
  if (hash !== undefined) return { hash };
  if (url === undefined) throw new UsageError('Neither a URL nor --hash was given.');
  if (parseUrl(url) === undefined)
    throw new UsageError(
      `"${url}" is no URL.`,
      'Give the URL of a document, such as https://files.example.org/a.md; `peersync why FILE` tells that of a file.',
    );
  return { url };
}

/** The peer has no such document. */
export function noDocument(
  key: { readonly url: string } | { readonly hash: string },
): PeersyncError {
  const name = 'url' in key ? key.url : `with the hash ${key.hash}`;
  return new PeersyncError({
    code: 'NOT_FOUND',
    message: `The peer has no document ${name}.`,
    hint: 'If it was pushed a moment ago, ask again; `peersync why FILE` tells what became of a file.',
    details: key,
  });
}

/** Shows what the peer has of one document. */
export const docCommand = define({
  ...DOCUMENT,
  output: z.object({
    url: z.string().optional(),
    urlhash: z.string().optional(),
    title: z.string().optional(),
    size: z.number().optional(),
    words: z.number().optional(),
    digest: z.string().optional(),
    lastModified: z.number().optional(),
    loadDate: z.number().optional(),
    at: z.number(),
    collections: z.array(z.string()).optional(),
    fields: z
      .record(z.string(), z.array(z.string()))
      .describe("All that the peer shows, under the peer's names."),
  }),
  examples: [
    ['$0 doc https://example.org/a.md', 'By its URL'],
    ['$0 doc --hash y4Zp1x3nLcAA --json', 'By its hash, with every field that the peer shows'],
  ],
  run: async (options) => {
    const key = documentOf(options);
    const query = 'url' in key ? key : { urlhash: key.hash };
    const doc = await askPeer(options, (client, signal) => client.peerdoc(query, { signal }));
    if (doc === undefined) throw noDocument(key);
    return answer(options, doc, () => docText(doc, systemClock.now()));
  },
});

/** The document for a person, line by line. */
function docText(doc: Peerdoc, now: number): string[] {
  const { size, words, digest, lastModified, loadDate, collections } = doc;
  const extent = [
    ...(size === undefined ? [] : [formatBytes(size)]),
    ...(words === undefined ? [] : [counted(words, 'word')]),
  ];
  return named([
    ['title', doc.title],
    ['document', doc.url],
    ['hash', doc.urlhash],
    ['collections', collections?.join(', ')],
    ['size', extent.length === 0 ? undefined : extent.join(', ')],
    ['content', digest === undefined ? undefined : `sha256 ${digest}`],
    ['modified', lastModified === undefined ? undefined : timeText(lastModified, now)],
    ['loaded', loadDate === undefined ? undefined : timeText(loadDate, now)],
  ]);
}

const documentList = z.array(
  z.object({
    url: z.string(),
    title: z.string().optional(),
    sentences: z.number().optional(),
  }),
);

/** Shows the sentences that a document has in common with others. */
export const citationCommand = define({
  output: z.object({
    url: z.string().optional(),
    urlhash: z.string().optional(),
    title: z.string().optional(),
    citing: documentList,
    similar: documentList,
    sentences: z.array(
      z.object({ number: z.number(), text: z.string(), appearsIn: z.array(z.string()) }),
    ),
  }),
  positionals: DOCUMENT.positionals,
  options: {
    ...DOCUMENT.options,
    filter: { type: 'boolean', describe: 'Only the sentences that occur elsewhere' },
    ch: option.value('From how many common sentences on another document counts as similar'),
  },
  examples: [
    ['$0 citation https://example.org/a', 'All sentences, with where else they stand'],
    ['$0 citation --hash y4Zp1x3nLcAA --filter --ch 10', 'Only what is elsewhere too'],
  ],
  run: async (options) => {
    const key = documentOf(options);
    const { filter } = options;
    const ch = options.ch === undefined ? undefined : option.wholeNumber('--ch', options.ch);
    const how: CitationOptions = {
      ...(filter === undefined ? {} : { filter }),
      ...(ch === undefined ? {} : { ch }),
    };
    const citation = await askPeer(options, (client, signal) =>
      client.citation(key, { ...how, signal }),
    );
    if (citation === undefined) throw noDocument(key);
    return answer(options, citation, () => citationText(citation));
  },
});

/** The citation record for a person, line by line. */
export function citationText({
  title,
  url,
  urlhash,
  sentences,
  citing,
  similar,
}: Citation): string[] {
  const elsewhere = sentences.filter(({ appearsIn }) => appearsIn.length > 0).length;
  const digits = Math.max(0, ...sentences.map(({ number }) => String(number).length));
  return [
    ...named([
      ['title', title],
      ['document', url],
      ['hash', urlhash],
      ['sentences', `${sentences.length} shown, ${elsewhere} of them also in other documents`],
    ]),
    ...sentences.flatMap(({ number, text, appearsIn }) => [
      `  ${String(number).padStart(digits)}  ${safe(text)}`,
      ...appearsIn.map((other) => `  ${''.padStart(digits)}  also in ${safe(other)}`),
    ]),
    ...documentsText('cited by', citing),
    ...documentsText('similar', similar),
  ];
}

function documentsText(what: string, documents: readonly CitingDocument[]): string[] {
  if (documents.length === 0) return [`${what}: no other document`];
  return [
    `${what}: ${counted(documents.length, 'document')}`,
    ...documents.map(({ url, title, sentences }) => {
      const common = sentences === undefined ? '' : ` (${counted(sentences, 'sentence')})`;
      return `  ${safe(url)}${common}${title === undefined ? '' : ` ${safe(title)}`}`;
    }),
  ];
}

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
        '--json tells about the object, and needs --output FILE for the object itself.',
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
