import type { AnswerForm } from './answer.js';
import { escapeMarkup, page } from './markup.js';
import { MOST_LISTED, type Share } from './share-store.js';

/** Objects as they are found; at its end it returns whether there are more. */
export type Listing = AsyncGenerator<Share, boolean>;

/** Characters that are sent at a time; object by object, each would travel alone. */
const CHUNK = 16_384;

/** Each gives the listing piece by piece; `c` is the group that was asked for, or empty. */
export const SHARE_WRITERS: Readonly<
  Record<AnswerForm, (listing: Listing, c: string) => AsyncIterable<string>>
> = {
  async *json(listing) {
    yield '{"shares":[';
    let separator = '\n';
    const more = yield* each(listing, (share) => {
      const line = `${separator}${JSON.stringify({ ...share, lastModified: iso(share) })}`;
      separator = ',\n';
      return line;
    });
    yield `\n],"more":${more}}\n`;
  },

  async *xml(listing) {
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<shares>\n';
    const more = yield* each(
      listing,
      (share) =>
        `<share><c>${escapeMarkup(share.c)}</c><data>${escapeMarkup(share.data)}</data>` +
        `<size>${share.size}</size><lastModified>${iso(share)}</lastModified></share>\n`,
    );
    yield `<more>${more}</more>\n</shares>\n`;
  },

  async *html(listing, c) {
    const [before = '', after = ''] = page('Shared objects', '\0').split('\0');
    const where = c === '' ? '' : ` <a href="/api/share.html">All groups</a> · `;
    yield `${before}<h1>Shared objects${c === '' ? '' : ` of ${escapeMarkup(c)}`}</h1>\n<p>${where}<a href="/">Search</a></p>
<table>\n<tr><th>Group</th><th>Object</th><th>Bytes</th><th>Last modified</th></tr>\n`;
    const more = yield* each(listing, row);
    yield '</table>\n';
    if (more) yield `<p class="dim">There are more than the ${MOST_LISTED} objects shown here.</p>\n`;
    yield `${uploadForm(c)}${after}`;
  },
};

async function* each(listing: Listing, write: (share: Share) => string): AsyncGenerator<string, boolean> {
  let lines = '';
  for (;;) {
    const next = await listing.next();
    if (!next.done) lines += write(next.value);
    if (next.done || lines.length > CHUNK) {
      yield lines;
      lines = '';
    }
    if (next.done) return next.value;
  }
}

function iso(share: Share): string {
  return new Date(Math.round(share.lastModified)).toISOString();
}

function row(share: Share): string {
  const { c, data, size } = share;
  const group = new URLSearchParams({ c });
  const object = new URLSearchParams(c === '' ? { data } : { c, data });
  const when = iso(share).slice(0, 16).replace('T', ' ');
  return (
    `<tr><td>${c === '' ? '' : link(group, c)}</td><td>${link(object, data)}</td>` +
    `<td>${size.toLocaleString('en')}</td><td>${when}</td></tr>\n`
  );
}

function link(query: URLSearchParams, text: string): string {
  return `<a href="/api/share.html?${escapeMarkup(query.toString())}">${escapeMarkup(text)}</a>`;
}

function uploadForm(c: string): string {
  return `<h2>Share a file</h2>
<form action="/api/share.html" method="post" enctype="multipart/form-data">
<label>Group<input name="c" value="${escapeMarkup(c)}" maxlength="255" autocomplete="off"></label>
<label>File<input type="file" name="data" required></label>
<p><button type="submit">Share</button></p>
</form>
<p class="dim">The administrator only. A file of the same name is replaced.</p>`;
}
