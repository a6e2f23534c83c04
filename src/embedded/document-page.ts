import { numberText } from '../lib/text.js';
import { formatBytes } from '../lib/units.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';
import { shownTitle } from './content.js';
import { findDocument } from './document-endpoints.js';
import { originOf, timeOf } from './markup.js';
import { parseQuery } from './query.js';
import type { Body, Context } from './server.js';
import { highlighted } from './snippets.js';

const MAX_PARTS = 1_000_000;
/** The characters that are highlighted at a time. */
const PIECE = 16_384;

/**
 * Answers `/document`: one document for a person, a part of its text at a time, with the words of
 * `query` highlighted.
 */
export async function documentPage(context: Context): Promise<Body> {
  const { documents, site } = context.deps;
  const form = await context.form();
  const document = findDocument(form, 'urlhash', documents);
  const query = (form.text('query') ?? '').slice(0, 1_000);
  const part = form.number('part', 0, MAX_PARTS);
  const { author, date, digest, language, lastModified, loadDate, size, url, urlhash, words } =
    document;
  const title = shownTitle(document);
  const facts: readonly (readonly [name: string, value: string | null])[] = [
    ['Author', author],
    ['Dated', date === null ? null : dayOf(date)],
    ['Language', language],
    ['Collection', document.collections.join(', ')],
    ['Size as pushed', formatBytes(size)],
    ['Words', numberText(words)],
    ['File changed', timeOf(lastModified)],
    ['Indexed', timeOf(loadDate)],
  ];
  const rows = facts.flatMap(([name, value]) =>
    value === null || value === '' ? [] : [fact(name, nameMarkup(value))],
  );
  rows.push(fact('sha256', `<code>${digest}</code>`));
  const text = documents.textPart(document.id, part);
  const link = (
    parameters: Readonly<Record<string, string>>,
    path: string,
    label: string,
  ): string =>
    `<a href="${path}?${escapeMarkup(new URLSearchParams(parameters).toString())}">${label}</a>`;
  const turn = (to: number, label: string): string =>
    link({ urlhash, query, part: String(to) }, '/document', label);
  const turns = [
    part > 0 ? turn(part - 1, '← Text before') : '',
    documents.textPart(document.id, part + 1) === undefined ? '' : turn(part + 1, 'More text →'),
  ];
  const pages =
    turns.join('') === ''
      ? ''
      : `<nav class="pager line" aria-label="Text">${turns.join('')}</nav>`;
  const top = `${query === '' ? '' : `<p class="back">${link({ query }, '/', '← Results')}</p>\n`}<h1 dir="auto">${escapeMarkup(title)}</h1>\n<p class="origin">${originOf(url)}</p>`;
  const parts = { title, section: 'search', top } as const;
  const { begin, end } = site.around(parts);
  const { highlights } = parseQuery(query);
  const record = link({ urlhash }, '/api/peerdoc.json', 'This record as JSON');
  const cited = link({ hash: urlhash }, '/api/citation.html', 'Documents with the same sentences');
  function* body(): Generator<string> {
    yield `${begin}<div class="document"><article>\n${part > 0 ? `<p class="hint">Part ${numberText(part + 1)} of the text</p>\n` : ''}`;
    yield '<div class="text" dir="auto">';
    for (const piece of piecesOf(text ?? '')) yield highlighted(piece, highlights);
    yield `</div>\n${pages}</article>\n<aside><dl class="facts">\n${rows.join('\n')}\n</dl>\n<ul class="more-of-it"><li>${cited}</li><li>${record}</li></ul></aside></div>${end}`;
  }
  return body();
}

/** Cuts a text between words if possible. */
function* piecesOf(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const blank = text.lastIndexOf(' ', start + PIECE);
    const end = text.length - start <= PIECE || blank <= start ? start + PIECE : blank;
    yield text.slice(start, end);
    start = end;
  }
}

function fact(name: string, markup: string): string {
  return `<div><dt>${name}</dt><dd>${markup}</dd></div>`;
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}
