import { createHash } from 'node:crypto';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: a page cannot hold these characters.
const TO_ESCAPE = /[&<>"'\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** Text for a page, in elements and attributes; characters that a page cannot hold become U+FFFD. */
export function escapeMarkup(text: string): string {
  return text.replace(TO_ESCAPE, (c) => ENTITIES[c] ?? '\ufffd');
}

const STYLE = `
:root { color-scheme: light dark; --text: light-dark(#1d2127, #e4e7eb); --dim: light-dark(#59626e, #9fa8b3);
  --line: light-dark(#d8dde3, #363d46); --ground: light-dark(#fbfbfa, #16191d); --field: light-dark(#fff, #1f242a);
  --link: light-dark(#0b57a4, #8abdf3); --mark: light-dark(#fdeaa0, #5d5013); --on-link: light-dark(#fff, #10151a);
  --danger: light-dark(#a4210b, #f39c8a); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 46rem; padding: 2rem 1.25rem 4rem; background: var(--ground); color: var(--text);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
body.wide { max-width: none; } .scroll { overflow-x: auto; margin: 0 0 1rem; }
h1 { font-size: 1.35rem; margin: 0 0 1rem; } h1 a { color: inherit; text-decoration: none; } h2 { font-size: 1.1rem; }
a, summary { color: var(--link); } summary { cursor: pointer; } details { margin: 1.2rem 0; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.dim, label, legend { color: var(--dim); font-size: .875rem; margin: .1rem 0; } label { display: block; }
form.search { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin-bottom: .8rem; }
form.fields { max-width: 46rem; } form.fields label { margin: .8rem 0; }
label.query { flex: 1 1 16rem; } label.collection { flex: 0 1 11rem; min-width: 8rem; }
input, select, button, textarea { font: inherit; padding: .45rem .7rem; border: 1px solid var(--line); border-radius: .4rem;
  background: var(--field); color: var(--text); width: 100%; height: 2.6rem; } textarea { resize: vertical; height: auto; }
button { width: auto; background: var(--link); color: var(--on-link); border-color: transparent; cursor: pointer; }
button.quiet { background: none; color: var(--danger); border-color: currentcolor; } input[type=checkbox] { width: auto; height: auto; }
ol.hits { list-style: none; margin: 1.5rem 0; padding: 0; } ol.hits li { margin: 0 0 1.4rem; }
ol.hits h2 { font-size: 1.05rem; font-weight: 600; margin: 0; } ol.hits p { margin: .15rem 0; }
mark { background: var(--mark); color: inherit; padding: 0 .1em; border-radius: .15em; }
nav { display: flex; justify-content: space-between; border-top: 1px solid var(--line); padding-top: .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1.2rem; } dt { color: var(--dim); } dd { margin: 0; }
table { border-collapse: collapse; width: 100%; } table.rows { width: auto; min-width: 40%; } th { white-space: nowrap; }
th, td { text-align: left; vertical-align: top; padding: .35rem 1rem .35rem 0; border-bottom: 1px solid var(--line); }
td { overflow-wrap: break-word; } td a { overflow-wrap: anywhere; }
td div { white-space: pre-wrap; min-width: 8em; max-width: 40rem; max-height: 12rem; overflow: auto; }
.actions { display: flex; flex-wrap: wrap; gap: 1rem; align-items: center; }
pre { white-space: pre-wrap; border: 1px solid var(--line); border-radius: .4rem; padding: .8rem; background: var(--field); }
`;

/** Nothing is loaded from anywhere, no script runs, and of styles only the one above. */
export const CONTENT_SECURITY_POLICY =
  `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; img-src data:; ` +
  `form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;

/** A whole page; `title` is text, `body` is markup. */
export function page(title: string, body: string): string {
  const { begin, end } = pageAround(title);
  return begin + body + end;
}

/** What stands around the body of a page that is made while it is sent; a wide one takes the whole window. */
export function pageAround(title: string, width: 'narrow' | 'wide' = 'narrow') {
  const begin = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(title)}</title>
<link rel="icon" href="data:,">
<style>${STYLE}</style>
</head>
<body class="${width}">
`;
  return { begin, end: '\n</body>\n</html>\n' };
}

/** A record as a page says it: lists and tables of its fields, with whatever `more` holds below. */
export function recordPage(title: string, record: object, more = ''): string {
  return page(
    title,
    `<h1>${escapeMarkup(title)}</h1>\n${markupOf(record)}\n${more}<p><a href="/">Search</a></p>`,
  );
}

function markupOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return documentLink(String(value), String(value));
  if (!Array.isArray(value)) {
    const fields = Object.entries(value).map(
      ([name, field]) => `<dt>${escapeMarkup(name)}</dt><dd>${markupOf(field)}</dd>`,
    );
    return `<dl>\n${fields.join('\n')}\n</dl>`;
  }
  const [first] = value as unknown[];
  if (typeof first !== 'object' || first === null) return value.map(markupOf).join('<br>');
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>\n`;
  const rows = value.map((row: object) => line('td', Object.values(row).map(markupOf)));
  return `<table>\n${line('th', Object.keys(first).map(escapeMarkup))}${rows.join('')}</table>`;
}

/** A link to a document, or its text alone where a browser should not follow it. */
export function documentLink(url: string, text: string): string {
  if (!/^(https?|ftp|file):/i.test(url)) return escapeMarkup(text);
  return `<a href="${escapeMarkup(url)}" rel="noreferrer">${escapeMarkup(text)}</a>`;
}
