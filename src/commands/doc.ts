import { z } from 'zod';
import { define, type Given } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { counted, named, timeText } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { systemClock } from '../lib/clock.js';
import { PeersyncError } from '../lib/errors.js';
import { parseUrl } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import type { Peerdoc } from '../peer/peerdoc.js';
import { askPeer } from './peer.js';

/** Which document a command is about. */
export const DOCUMENT = {
  positionals: { url: option.value('The URL of the document (`peersync why FILE` shows it)') },
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
      'Give the URL of a document, such as https://files.example.org/a.md; `peersync why FILE` shows that of a file.',
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
    hint: 'If it was pushed a moment ago, ask again; `peersync why FILE` explains the status of a file.',
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
