import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemCode } from '../lib/errors.js';
import { readableUrl } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';

/**
 * Where the build leaves the style sheet that the status page has too, and the script; nothing is
 * there in a bare checkout.
 */
const BROWSER_DIRECTORY = fileURLToPath(new URL('../page/browser/', import.meta.url));

/** Which of the links at the top is the page itself. */
type Place = 'search' | 'tables' | 'shares';

const LINKS: Readonly<Record<Place, readonly [path: string, label: string]>> = {
  search: ['/', 'Search'],
  tables: ['/Tables_p.html', 'Tables'],
  shares: ['/api/share.html', 'Shares'],
};
const MARK =
  '<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M3 6.5h10.5M10.5 3l3.5 3.5-3.5 3.5M17 13.5H6.5M9.5 10 6 13.5 9.5 17" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>';

/** As on the status page; the script says which colours there are now. */
const THEME =
  '<div class="actions line"><button type="button" id="theme" class="quiet scripted"><svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7" fill="none" stroke="currentColor" stroke-width="2"/><path d="M10 3a7 7 0 0 1 0 14z" fill="currentColor"/></svg><span></span></button></div>';

/** A page, piece by piece: `title` is text, `top` and `body` are markup. */
interface PageParts {
  readonly title: string;
  readonly place?: Place;
  /** Stands in the band at the top. */
  readonly top: string;
  readonly body: string;
}

/** What all pages of the peer have in common. */
export class Site {
  /** Where the daemon's status page is; undefined while none is open. */
  statusUrl: string | undefined;
  /**
   * Nothing is loaded from anywhere; of styles and scripts those alone that stand in the page; the
   * script may ask this peer.
   */
  readonly contentSecurityPolicy: string;
  readonly #head: string;

  constructor(style: string, script: string, icon: string) {
    const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
    this.contentSecurityPolicy = `default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
    this.#head = `<meta name="color-scheme" content="light dark">
<link rel="icon" type="image/svg+xml" href="data:image/svg+xml;base64,${Buffer.from(icon).toString('base64')}">
<style>${style}</style>${
      script === ''
        ? ''
        : `
<script>${script}</script>`
    }`;
  }

  /** Reads what the build made for browsers. */
  static async open(directory = BROWSER_DIRECTORY): Promise<Site> {
    const names = ['style.css', 'search.js', 'favicon-busy.svg'];
    const [style = '', script = '', icon = ''] = await Promise.all(
      names.map((name) => readFile(join(directory, name), 'utf8').catch(noneIfAbsent)),
    );
    return new Site(style, script, icon);
  }

  /** A whole page. */
  page(parts: PageParts): string {
    const { begin, end } = this.around(parts);
    return begin + parts.body + end;
  }

  /** What stands around the body of a page that is made while it is sent. */
  around({ title, place, top }: Omit<PageParts, 'body'>): {
    readonly begin: string;
    readonly end: string;
  } {
    const links = Object.entries(LINKS).map(([name, [path, label]]) => {
      const current = name === place ? ' aria-current="page"' : '';
      return `<a href="${path}"${current}>${label}</a>`;
    });
    if (this.statusUrl !== undefined)
      links.push(`<a href="${escapeMarkup(this.statusUrl)}" rel="noreferrer">Status</a>`);
    const begin = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(title)} · peersync</title>
${this.#head}
</head>
<body class="peer">
<a class="skip" href="#main">Skip to the content</a>
<div class="band">
<header class="wrapped"><p class="mark line">${MARK}peersync</p><nav class="site" aria-label="Pages of peersync">${links.join('')}</nav>${THEME}</header>
${top}
</div>
<main id="main" tabindex="-1">
`;
    return { begin, end: '\n</main>\n</body>\n</html>\n' };
  }

  /**
   * A record as a page says it: lists and tables of its fields, with whatever `more` holds below.
   */
  record(title: string, record: object, more = ''): string {
    const top = `<h1>${escapeMarkup(title)}</h1>`;
    return this.page({ title, top, body: `${markupOf(record)}\n${more}` });
  }
}

function noneIfAbsent(error: unknown): string {
  if (systemCode(error) !== 'ENOENT') throw error;
  return '';
}

function markupOf(value: unknown): string {
  if (typeof value !== 'object' || value === null)
    return documentLink(String(value), String(value));
  if (!Array.isArray(value)) {
    const fields = Object.entries(value).map(
      ([name, field]) => `<dt>${escapeMarkup(name)}</dt><dd>${markupOf(field)}</dd>`,
    );
    return `<dl class="record">\n${fields.join('\n')}\n</dl>`;
  }
  const [first] = value as unknown[];
  if (typeof first !== 'object' || first === null) return value.map(markupOf).join('<br>');
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>\n`;
  const rows = value.map((row: object) => line('td', Object.values(row).map(markupOf)));
  return `<div class="scroll"><table>\n${line('th', Object.keys(first).map(escapeMarkup))}${rows.join('')}</table></div>`;
}

/** A link to a document, or its text alone where a browser does not open it. */
export function documentLink(url: string, text: string): string {
  if (!/^(https?|ftp):/i.test(url)) return escapeMarkup(text);
  return `<a href="${escapeMarkup(url)}" rel="noreferrer">${escapeMarkup(text)}</a>`;
}

/**
 * Where a document comes from: a link, or what to copy where browsers open none, as the path of a
 * file.
 */
export function originOf(url: string): string {
  if (/^(https?|ftp):/i.test(url)) return documentLink(url, readableUrl(url));
  const path = pathOf(url) ?? url;
  return `<code>${nameMarkup(path)}</code> <button type="button" class="small scripted" data-copy="${escapeMarkup(path)}">Copy</button>`;
}

/** The path that a `file://` URL of this machine names. */
function pathOf(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/** A URL as a person reads it: of a file its path. */
export function placeOf(url: string): string {
  return pathOf(url) ?? readableUrl(url);
}

/** In UTC, to the minute. */
export function timeOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
