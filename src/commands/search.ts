import { z } from 'zod';
import { typedWords } from '../cli/arguments.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { canDraw, wantsColour } from '../cli/terminal.js';
import { columnsOf, counted, safe, wrapped } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { PeersyncError } from '../lib/errors.js';
import { parseUrl } from '../lib/text.js';
import { formatBytes, wallClockText } from '../lib/units.js';
import type { Found, SearchAnswer } from '../peer/search.js';
import { askPeer } from './peer.js';

/** The largest number of results in one request. */
const MAX_RESULTS = 100;
const LONGEST_QUERY = 1_000;

/** Searches the peer as its own search page does. */
export const searchCommand = define({
  output: z.object({
    query: z.string(),
    total: z.number(),
    totalIsExact: z.boolean(),
    corrected: z.string().optional(),
    items: z.array(
      z.object({
        url: z.string(),
        title: z.string().optional(),
        snippet: z.string().optional(),
        size: z.number().optional(),
        author: z.string().optional(),
        collections: z.array(z.string()).optional(),
        date: z.number().optional(),
        lastModified: z.number().optional(),
        loadDate: z.number().optional(),
      }),
    ),
  }),
  positionals: {
    words: option.several('Words, all of which have to be there; the peer says what else it takes'),
  },
  options: {
    collection: option.value('Only documents of this collection'),
    limit: option.preset('10', `At most so many, up to ${MAX_RESULTS}`),
    sort: option.oneOf(['date'], 'The newest first; the best first unless given'),
  },
  examples: [
    ['$0 search green tea', 'The best ten'],
    [`$0 search '"green tea"'`, 'Both words together; the outer quotes are for the shell'],
    ['$0 search invoice --collection bills --sort date', 'The newest of one collection'],
    ['$0 search tea -milk', 'Tea, and no milk'],
    ['$0 search --json -- "$WORDS"', 'For a program; behind `--` nothing is an option'],
  ],
  run: async (options) => {
    const words = typedWords(options.words).join(' ');
    if (words.trim() === '' || words.length > LONGEST_QUERY)
      throw new UsageError(
        words.trim() === '' ? 'No words were given.' : `The query has ${words.length} characters.`,
        `Give words of at most ${LONGEST_QUERY} characters in all: \`peersync search green tea\`.`,
      );
    const limit = option.wholeNumber('--limit', options.limit);
    if (limit > MAX_RESULTS)
      throw new UsageError(`--limit: received ${limit}.`, `Give at most ${MAX_RESULTS}.`);
    const { collection, sort } = options;
    const found = await askPeer(options, (client, signal) =>
      client.search({ words, collection, limit, sort }, { signal }),
    );
    if (found === undefined)
      throw new PeersyncError({
        code: 'NO_SEARCH',
        message: 'This peer has no search that peersync knows.',
        hint: 'Search it on its own pages; the embedded peer and YaCy can be searched from here.',
      });
    return answer(options, { query: words, ...found }, () =>
      searchText({ query: words, ...found }, process.stdout, process.env),
    );
  },
});

interface Terminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The schemes of links. A document may have any scheme, and a terminal opens any link. */
const LINKED = new Set(['http:', 'https:', 'ftp:', 'file:']);

/** Returns the results as lines. In a terminal, titles are bold links (OSC 8). */
export function searchText(
  { corrected, items, query, total, totalIsExact }: SearchAnswer & { readonly query: string },
  out: Terminal,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  const isDrawn = canDraw(out, env);
  const width = isDrawn ? columnsOf(out) : undefined;
  const bold = (text: string) => (isDrawn && wantsColour(env) ? `\x1b[1m${text}\x1b[0m` : text);
  const link = (text: string, url: string) =>
    isDrawn && LINKED.has(parseUrl(url)?.protocol ?? '')
      ? `\x1b]8;;${new URL(url).href}\x1b\\${text}\x1b]8;;\x1b\\`
      : text;
  const many = `${totalIsExact ? '' : 'more than '}${counted(total, 'result')}`;
  const instead = corrected === undefined ? '' : ` for ${safe(corrected)}, which is similar`;
  if (items.length === 0) return [`Nothing found for ${safe(query)}.`];
  return [
    ...items.flatMap((item) => [
      link(bold(safe(item.title ?? item.url)), item.url),
      ...(item.snippet ? wrapped([`  ${safe(item.snippet)}`], width) : []),
      `  ${link(safe(item.url), item.url)}`,
      `  ${factsOf(item)}`.trimEnd(),
      '',
    ]),
    `${items.length} of ${many}${instead}.`,
  ].filter((line, i, lines) => line !== '' || lines[i - 1] !== '');
}

function factsOf({ author, collections, date, lastModified, loadDate, size }: Found): string {
  const at = date ?? lastModified ?? loadDate;
  return [
    author === undefined ? '' : safe(author),
    safe(collections?.join(', ') ?? ''),
    size === undefined ? '' : formatBytes(size),
    at === undefined ? '' : wallClockText(at),
  ]
    .filter((fact) => fact !== '')
    .join(' · ');
}
