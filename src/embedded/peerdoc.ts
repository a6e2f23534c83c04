import { type Answer, type AnswerForm, answer, Refusal } from './answer.js';
import type { RequestForm } from './form.js';
import type { Document, Library } from './library.js';
import { definitionList, documentLink, escapeMarkup, page } from './markup.js';
import { normaliseUrl } from './urls.js';

/** Parts of the text that the HTML form shows. */
const SHOWN_PARTS = 4;

/**
 * Shows one indexed document, by `url` or by `urlhash` (which wins where both are given). `html=true` adds the beginning of
 * its text to the HTML form. A document that is not in the index is refused with 404, in the form asked for.
 */
export function peerdoc(form: RequestForm, as: AnswerForm, library: Library): Answer {
  const withText = form.isTrue('html');
  const document = find(form, library);
  if (!document) throw new Refusal(404, 'This document is not in the index.');
  if (as === 'json') return answer(as, jsonOf(document));
  return answer(as, htmlOf(document, withText ? beginningOf(document, library) : ''));
}

function find(form: RequestForm, library: Library): Document | undefined {
  const urlhash = form.text('urlhash');
  if (urlhash !== undefined && urlhash !== '') return library.byUrlHash(urlhash);
  const url = form.text('url');
  if (url === undefined || url === '')
    throw new Refusal(400, 'Name the document by the parameter url or urlhash.');
  const normal = normaliseUrl(url);
  if (!normal.ok) throw new Refusal(400, `${normal.why.replace(/^t/, 'T')}.`);
  return library.byUrl(normal.url);
}

function beginningOf(document: Document, library: Library): string {
  const parts: string[] = [];
  for (let part = 0; part < SHOWN_PARTS; part += 1) {
    const text = library.textPart(document.id, part);
    if (text === undefined) return parts.join('');
    parts.push(text);
  }
  return library.textPart(document.id, SHOWN_PARTS) === undefined
    ? parts.join('')
    : `${parts.join('')}\n… (more)`;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function jsonOf(d: Document): string {
  const { url, urlhash, title, collections, size, words, digest } = d;
  const times = { lastModified: iso(d.lastModified), loadDate: iso(d.loadDate) };
  return `${JSON.stringify({ url, urlhash, title, collections, size, words, digest, ...times }, null, 2)}\n`;
}

function htmlOf(d: Document, text: string): string {
  const list = definitionList([
    ['url', d.url],
    ['urlhash', d.urlhash],
    ['title', d.title],
    ['collections', d.collections.join(', ')],
    ['size', String(d.size)],
    ['words', String(d.words)],
    ['digest', d.digest],
    ['lastModified', iso(d.lastModified)],
    ['loadDate', iso(d.loadDate)],
  ]);
  const shown = text === '' ? '' : `\n<h2>Text</h2>\n<pre>${escapeMarkup(text)}</pre>`;
  const link = `<p>${documentLink(d.url, 'Open the document')} · <a href="/">Search</a></p>`;
  return page(d.title, `<h1>${escapeMarkup(d.title)}</h1>\n${list}\n${link}${shown}`);
}
