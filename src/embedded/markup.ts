import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemCode } from '../lib/errors.js';
import { readableUrl } from '../lib/text.js';
import { escapeMarkup, nameMarkup } from '../web/markup.js';

/**
 * The directory in which the build puts the style sheet and scripts for browsers. A checkout
 * without a build has none.
 */
const BROWSER_DIRECTORY = fileURLToPath(new URL('../page/browser/', import.meta.url));

/** The link at the top that is the current page. */
type Section = 'search' | 'tables' | 'shares';

const LINKS: Readonly<Record<Section, readonly [path: string, label: string]>> = {
  search: ['/', 'Search'],
  tables: ['/Tables_p.html', 'Tables'],
  shares: ['/api/share.html', 'Shares'],
};
const MARK =
  '<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d="M3 6.5h10.5M10.5 3l3.5 3.5-3.5 3.5M17 13.5H6.5M9.5 10 6 13.5 9.5 17" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"/></svg>';

/** The button for the colour scheme, as on the status page. A script labels it. */
const THEME =
  '<div class="actions line"><button type="button" id="theme" class="quiet scripted"><svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><circle cx="10" cy="10" r="7" fill="none" stroke="currentColor" stroke-width="2"/><path d="M10 3a7 7 0 0 1 0 14z" fill="currentColor"/></svg><span></span></button></div>';

/** The parts of a page: `title` is text, `top` and `body` are markup. */
interface PageParts {
  readonly title: string;
  readonly section?: Section;
  /** The content of the band at the top. */
  readonly top: string;
  readonly body: string;
}

/** The frame of all pages of the peer. */
export class Site {
  /** The address of the daemon's status page; undefined while it is closed. */
  statusUrl: string | undefined;
  /**
   * The policy loads nothing from elsewhere, and allows only the style and the script in the page.
   * The script may send requests to this peer.
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

  /** Reads the files that the build made for browsers. */
  static async open(directory = BROWSER_DIRECTORY): Promise<Site> {
    const names = ['style.css', 'search.js', 'favicon-busy.svg'];
    const [style = '', script = '', icon = ''] = await Promise.all(
      names.map((name) => readFile(join(directory, name), 'utf8').catch(noneIfAbsent)),
    );
    return new Site(style, script, icon);
  }

  /** Returns a whole page. */
  page(parts: PageParts): string {
    const { begin, end } = this.around(parts);
    return begin + parts.body + end;
  }

  /** Returns the frame of a page whose body is made while it is sent. */
  around({ title, section, top }: Omit<PageParts, 'body'>): {
    readonly begin: string;
    readonly end: string;
  } {
    const links = Object.entries(LINKS).map(([name, [path, label]]) => {
      const current = name === section ? ' aria-current="page"' : '';
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
<header class="band">
<div class="wrapped masthead"><p class="mark line">${MARK}peersync</p><nav class="site" aria-label="Pages of peersync">${links.join('')}</nav>${THEME}</div>
${top}
</header>
<main id="main" tabindex="-1">
`;
    return { begin, end: '\n</main>\n</body>\n</html>\n' };
  }

  /** Returns a record as a page: lists and tables of its fields, and the markup `more` below. */
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

/** Returns a link to a document, or its text alone if browsers do not open its URL. */
function documentLink(url: string, text: string, attributes = ''): string {
  if (!/^(https?|ftp):/i.test(url)) return escapeMarkup(text);
  return `<a href="${escapeMarkup(url)}" rel="noreferrer"${attributes}>${escapeMarkup(text)}</a>`;
}

/**
 * Returns the origin of a document: a link, or the path of a file with a button that copies it. A
 * link to the file follows if the daemon serves it.
 */
export function originOf(url: string, hasOriginal = false): string {
  return originMarkup(url, hasOriginal, () => '');
}

/**
 * Returns the origin of a document for a list of results. A result has one tab stop, which is its
 * title. Each other control has `data-key`, the key that activates it while the title has the focus
 * (see `search.ts` of the page). They are tab stops on the page of the document.
 */
export function originOfResult(url: string, hasOriginal: boolean): string {
  const attributesOf = (key?: Key): string =>
    ` tabindex="-1"${key === undefined ? '' : ` data-key="${key}"`}`;
  return originMarkup(url, hasOriginal, attributesOf);
}

/** The key of a control: `o` opens, `c` copies. */
type Key = 'c' | 'o';

/** @param attributesOf returns the attributes of a control, given its key */
function originMarkup(
  url: string,
  hasOriginal: boolean,
  attributesOf: (key?: Key) => string,
): string {
  const original = escapeMarkup(`/original?${new URLSearchParams({ url })}`);
  const open = hasOriginal ? ` <a href="${original}"${attributesOf('o')}>Open original</a>` : '';
  if (/^(https?|ftp):/i.test(url))
    return documentLink(url, readableUrl(url), attributesOf(hasOriginal ? undefined : 'o')) + open;
  const path = pathOf(url) ?? url;
  return `<code>${nameMarkup(path)}</code> <button type="button" class="small scripted" data-copy="${escapeMarkup(path)}"${attributesOf('c')}>Copy</button>${open}`;
}

/** Returns the path of a `file://` URL of this machine; undefined for others. */
function pathOf(url: string): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/** Returns a URL for a person; the path if it is of a file. */
export function placeOf(url: string): string {
  return pathOf(url) ?? readableUrl(url);
}

/** Formats a moment in UTC, to the minute. */
export function timeOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
