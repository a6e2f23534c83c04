import { z } from 'zod';
import { typedWords } from '../cli/arguments.js';
import { define } from '../cli/command.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { canDraw, wantsColour } from '../cli/terminal.js';
import { columnsOf, counted, safe, wrapped } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import { PeersyncError } from '../lib/errors.js';
import { parseUrl, shellWord } from '../lib/text.js';
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
    without: z.array(z.string()).optional(),
    keywords: z.array(z.string()).optional(),
    misread: z.array(z.string()).optional(),
    otherForms: z.number().optional(),
    signsIgnored: z.literal(true).optional(),
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
    notIndexed: z
      .array(
        z.object({
          path: z.string(),
          status: z.string(),
          code: z.string().optional(),
          reason: z.string().optional(),
          hint: z.string().optional(),
        }),
      )
      .optional(),
    notIndexedTotal: z.number().optional(),
  }),
  positionals: {
    words: option.several('Words, all of which have to be there; the peer says what else it takes'),
  },
  options: {
    collection: option.value('Only documents of this collection'),
    type: option.value('Only files of this type, such as pdf, image or mail'),
    after: option.value('Only documents from this year, month or day on, such as 2024-03'),
    before: option.value('Only documents up to this year, month or day'),
    limit: option.preset('10', `At most so many, up to ${MAX_RESULTS}`),
    sort: option.oneOf(['date'], 'The newest first; the best first unless given'),
  },
  examples: [
    ['$0 search green tea', 'The best ten'],
    [`$0 search '"green tea"'`, 'Both words together; the outer quotes are for the shell'],
    ['$0 search invoice --collection bills --sort date', 'The newest of one collection'],
    ['$0 search tea -milk', 'Tea, and no milk'],
    ['$0 search lease --type pdf --after 2023-07 --before 2024', 'PDF files of a year and a half'],
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
    const { after, before, collection, sort, type } = options;
    for (const [name, moment] of Object.entries({ after, before })) checkMoment(name, moment);
    if (type !== undefined && !/^\w+$/.test(type))
      throw new UsageError(`--type: received "${type}".`, 'Give an extension, such as pdf.');
    const query = { words, type, after, before, collection, limit, sort };
    const found = await askPeer(options, (client, signal) => client.search(query, { signal }));
    if (found === undefined && (type ?? after ?? before) !== undefined)
      throw new PeersyncError({
        code: 'NO_SEARCH',
        message: 'The search of this peer does not know --type, --after and --before.',
        hint: 'Leave them out; the embedded peer knows them.',
      });
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

/** @throws UsageError if it is no year, month or day */
function checkMoment(name: string, moment: string | undefined): void {
  if (moment === undefined) return;
  const isForm = /^\d{4}(-\d\d(-\d\d)?)?$/.test(moment);
  const at = new Date(moment);
  if (isForm && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(moment)) return;
  throw new UsageError(
    `--${name}: received "${moment}".`,
    'Give a year, a month or a day, such as 2024, 2024-03 or 2024-03-17.',
  );
}

interface Terminal {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** The schemes of links. A document may have any scheme, and a terminal opens any link. */
const LINKED = new Set(['http:', 'https:', 'ftp:', 'file:']);

const SIGNS_IGNORED =
  ', where the signs of words such as C++ are ignored until the index is migrated';

/** Returns the results as lines. In a terminal, titles are bold links (OSC 8). */
export function searchText(
  answer: SearchAnswer & { readonly query: string },
  out: Terminal,
  env: Readonly<Record<string, string | undefined>>,
): string[] {
  const {
    corrected,
    items,
    keywords,
    misread,
    otherForms,
    query,
    signsIgnored,
    total,
    totalIsExact,
    without,
  } = answer;
  const isDrawn = canDraw(out, env);
  const width = isDrawn ? columnsOf(out) : undefined;
  const bold = (text: string) => (isDrawn && wantsColour(env) ? `\x1b[1m${text}\x1b[0m` : text);
  const link = (text: string, url: string) =>
    isDrawn && LINKED.has(parseUrl(url)?.protocol ?? '')
      ? `\x1b]8;;${new URL(url).href}\x1b\\${text}\x1b]8;;\x1b\\`
      : text;
  const many = `${totalIsExact ? '' : 'more than '}${counted(total, 'result')}`;
  const instead = corrected === undefined ? '' : ` for ${safe(corrected)}, which is similar`;
  const by = keywords === undefined ? '' : ` with ${keywords.map(safe).join(', ')}`;
  const some = otherForms === total ? 'with' : `${otherForms} of them with`;
  const forms = otherForms === undefined ? '' : `, ${some} other forms of the words`;
  const missing =
    without === undefined ? '' : `, without ${without.map(safe).join(' and without ')}`;
  const words = misread === undefined ? '' : `, with ${misread.map(safe).join(' and ')} as words`;
  const signs = signsIgnored === undefined ? '' : SIGNS_IGNORED;
  const named = notIndexedLines(answer);
  if (items.length === 0)
    return [
      `Nothing found for ${safe(query)}${words}${signs}.`,
      ...(named.length > 0 ? ['', ...named] : []),
    ];
  return [
    ...items.flatMap((item) => [
      link(bold(safe(item.title ?? item.url)), item.url),
      ...(item.snippet ? wrapped([`  ${safe(item.snippet)}`], width) : []),
      `  ${link(safe(item.url), item.url)}`,
      `  ${factsOf(item)}`.trimEnd(),
      '',
    ]),
    `${items.length} of ${many}${instead}${by}${forms}${missing}${words}${signs}.`,
    ...(named.length > 0 ? ['', ...named] : []),
  ].filter((line, i, lines) => line !== '' || lines[i - 1] !== '');
}

/** Returns lines about the files that are not searchable, and whose names have the words. */
function notIndexedLines({ notIndexed = [], notIndexedTotal = 0 }: SearchAnswer): string[] {
  const left = notIndexedTotal - notIndexed.length;
  const lines = notIndexed.flatMap(({ hint, path, reason, status }) => [
    `not searchable: ${safe(path)} – ${safe(status)}${reason === undefined ? '' : `: ${safe(reason)}`}`,
    ...(hint === undefined ? [] : [`  ${safe(hint)}`]),
    `  \`peersync why ${shellWord(safe(path))}\` explains it.`,
  ]);
  return left > 0 ? [...lines, `${counted(left, 'more file')} with these words.`] : lines;
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
