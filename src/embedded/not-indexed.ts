import { counted } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import type { NotIndexedFile, NotIndexedFiles, SoughtWord } from './daemon-link.js';
import { withPlainWords } from './parsed-query.js';
import { parseQuery } from './query-parser.js';
import type { SearchRequest } from './results.js';
import { isQuestion, tellsApart } from './stop-words.js';

/**
 * Shorter words are in too many names: three Latin letters in all, or one Chinese character. In
 * bytes of UTF-8.
 */
const MIN_BYTES = 3;

/**
 * Returns the words that the path of a file which is not indexed must have. Undefined for a later
 * page, for a query with filters or operators, which such a file cannot be compared with, and for
 * too few letters.
 */
export function soughtWords({
  collection,
  isTyping,
  offset,
  query,
}: SearchRequest): readonly SoughtWord[] | undefined {
  const asked = parseQuery(query, isTyping);
  const others = [
    asked.excluded,
    asked.groups,
    asked.excludedGroups,
    asked.collections,
    asked.urls,
    asked.filters,
  ];
  if (offset > 0 || collection !== '' || others.some((list) => list.length > 0)) return undefined;
  // Names of files have plain words only.
  const parsed = withPlainWords(asked);
  const telling = isQuestion(parsed.terms) ? parsed.terms.filter(tellsApart) : parsed.terms;
  const words = telling.flatMap(({ isPrefix, variants, words: [word, ...more] }): SoughtWord[] => {
    if (word === undefined) return [];
    if (more.length === 0) return [{ spellings: variants, isPrefix }];
    return [word, ...more].map((each, i) => ({
      spellings: [each],
      isPrefix: isPrefix && i === more.length,
    }));
  });
  const text = words.map(({ spellings: [word = ''] }) => word).join('');
  return Buffer.byteLength(text) < MIN_BYTES ? undefined : words;
}

/** Returns the fields of a search answer in JSON; none if there is no such file. */
export function notIndexedFields(found: NotIndexedFiles | undefined): object {
  if (found === undefined) return {};
  const { files, total, totalIsExact } = found;
  if (total === 0 && totalIsExact) return {};
  return {
    notIndexed: files,
    notIndexedTotal: total,
    ...(!totalIsExact && { notIndexedTotalIsExact: false }),
  };
}

const NOT_ALL = 'Not all names of files that are not searchable were compared.';

/**
 * Returns the section below the results; empty if there is no such file.
 *
 * @param foundNothing whether the search itself found nothing
 */
export function notIndexedMarkup(
  found: NotIndexedFiles | undefined,
  foundNothing: boolean,
): string {
  if (found === undefined) return '';
  const { files, total, totalIsExact } = found;
  if (total === 0) return foundNothing && !totalIsExact ? `<p class="hint">${NOT_ALL}</p>` : '';
  const left = total - files.length;
  const more = [
    left > 0 ? `${counted(left, 'more file')} with these words.` : '',
    totalIsExact ? '' : NOT_ALL,
  ].filter((line) => line !== '');
  const rest = more.length === 0 ? '' : `\n<p class="hint">${more.join(' ')}</p>`;
  return `<section class="not-indexed" aria-labelledby="not-indexed">
<h2 id="not-indexed">Not searchable, found by name</h2>
<ul>
${files.map(fileItem).join('\n')}
</ul>${rest}
</section>`;
}

function fileItem({ command, hint, path, status, isOlderSearchable, reason }: NotIndexedFile) {
  const older = isOlderSearchable ? ' An older version of the file may still be searchable.' : '';
  return `<li>
<p dir="auto"><code>${nameMarkup(path)}</code> – ${status}: ${nameMarkup(reason)}</p>
<p class="hint">${hintMarkup(hint)}${older} <code>${nameMarkup(command)}</code> <button type="button" class="small scripted" data-copy="${escapeMarkup(command)}">Copy</button></p>
</li>`;
}

/** Returns a sentence as markup. A command between backticks becomes code. */
function hintMarkup(hint: string): string {
  return nameMarkup(hint).replace(/`([^`]+)`/g, '<code>$1</code>');
}
