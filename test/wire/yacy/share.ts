import { type Answer, type Asked, emptyPage, notFound, page } from './answer.js';
import { first, type ReadForm } from './form.js';

interface SharedFile {
  readonly bytes: Buffer;
  /** Whole seconds, in ms since the epoch. */
  readonly modified: number;
}

/** The files under `/share/`, open to everybody, and the form that puts text there. */
export class Share {
  readonly #breaking = new Map<string, number>();
  readonly #files = new Map<string, SharedFile>([['dump/', { bytes: Buffer.alloc(0), modified: 0 }]]);

  /** Puts a file there, as the administrator does; `path` is relative to `/share/`. */
  put(path: string, content: string | Uint8Array, modified = Date.now()): void {
    this.#files.set(path, { bytes: Buffer.from(content), modified: Math.floor(modified / 1_000) * 1_000 });
  }

  /** Has the next answer with a file break off after so many bytes. */
  breakOff(path: string, bytes: number): void {
    this.#breaking.set(path, bytes);
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  content(path: string): Buffer | undefined {
    return this.#files.get(path)?.bytes;
  }

  /** `api/share`, which takes text under the name of an index dump, and nothing else. */
  upload(path: string, form: ReadForm): Answer {
    if (form === 'too large' || form === 'none' || form.has('c')) {
      return path.endsWith('.html') ? page('text/html', UPLOAD_FORM) : emptyPage();
    }
    const name = first(form, 'data') ?? '';
    const content = first(form, 'data$file');
    const ok = /^yacy_dump_.*\.xml\.gz$/.test(name) && content !== undefined;
    if (ok && /_t.\./.test(name)) this.put(`dump/${name.replace(/_t.\./, '_ts.')}`, content);
    return path.endsWith('.html') ? page('text/html', uploadResult(ok)) : emptyPage();
  }

  /** A file or a listing below `/share/`. */
  get({ path, headers }: Asked): Answer {
    const name = decodeURIComponent(path.slice('/share/'.length));
    const file = this.#files.get(name);
    if (file !== undefined && !name.endsWith('/')) {
      const breaksAfter = this.#breaking.get(name);
      this.#breaking.delete(name);
      return { ...fileAnswer(file, headers), ...(breaksAfter === undefined ? {} : { breaksAfter }) };
    }
    const inside = [...this.#files.keys()].filter((each) => each.startsWith(name.replace(/\/*$/, '/')));
    if (name !== '' && inside.length === 0) return notFound(path);
    if (!path.endsWith('/')) return { status: 302, headers: { Location: `${path}/` }, body: '' };
    return this.#listing(path, name);
  }

  #listing(path: string, directory: string): Answer {
    const files = [...this.#files].filter(([name]) => name.startsWith(directory) && name !== directory);
    const entries = new Map<string, { readonly size: number; readonly modified: number }>();
    for (const [name, { bytes, modified }] of files) {
      const [entry = ''] = /^[^/]+\/?/.exec(name.slice(directory.length)) ?? [];
      entries.set(entry, { size: entry.endsWith('/') ? 4_096 : bytes.length, modified });
    }
    const rows = [...entries]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, { size, modified }]) => {
        const href = `${path}${encodeURIComponent(name).replace(/%2F$/, '/')}`;
        const shown = name.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
        return `\n<TR><TD><A HREF="${href}">${shown}&nbsp;</A></TD><TD ALIGN=right>${size} bytes&nbsp;</TD><TD>${listedDate(modified)}</TD></TR>`;
      });
    const now = Date.now();
    const headers = {
      'Content-Type': 'text/html; charset=UTF-8',
      'Cache-Control': 'no-cache, no-store',
      Expires: new Date(now + 10_000).toUTCString(),
      'Last-Modified': new Date(Math.max(0, ...files.map(([, { modified }]) => modified))).toUTCString(),
    };
    const parent = `<TR><TD><A HREF="${path}../">Parent Directory</A></TD><TD></TD><TD></TD></TR>\n`;
    const body = `<HTML><HEAD><LINK HREF="jetty-dir.css" REL="stylesheet" TYPE="text/css"/><TITLE>Directory: ${path}</TITLE></HEAD><BODY>
<H1>Directory: ${path}</H1>
<TABLE BORDER=0>
${parent}${rows.join('')}</TABLE>
</BODY></HTML>
`;
    return { status: 200, headers, body };
  }
}

/** Conditions are those of Jetty, which compares whole seconds. */
function fileAnswer({ bytes, modified }: SharedFile, asked: Asked['headers']): Answer {
  const since = Date.parse(String(asked['if-modified-since'] ?? ''));
  const headers = {
    'Cache-Control': 'public, max-age=600',
    'Content-Type': 'application/gzip',
    'Accept-Ranges': 'bytes',
  };
  const unless = Date.parse(String(asked['if-unmodified-since'] ?? ''));
  if (modified > unless) return { status: 412, headers: {}, body: '' };
  if (modified <= since) return { status: 304, headers: {}, body: '' };
  const range = /^bytes=(\d*)-(\d*)$/.exec(String(asked.range ?? ''));
  if (range === null) return { status: 200, headers, body: bytes };
  const [, from = '', to = ''] = range;
  const start = from === '' ? Math.max(0, bytes.length - Number(to)) : Number(from);
  const end = from === '' || to === '' ? bytes.length - 1 : Math.min(Number(to), bytes.length - 1);
  if (start > end) {
    return { status: 416, headers: { 'Content-Range': `bytes */${bytes.length}` }, body: '' };
  }
  const partial = { ...headers, 'Content-Range': `bytes ${start}-${end}/${bytes.length}` };
  return { status: 206, headers: partial, body: bytes.subarray(start, end + 1) };
}

/** `Nov 21, 2026, 3:37:40 AM` */
function listedDate(ms: number): string {
  const options = { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' } as const;
  return new Intl.DateTimeFormat('en-US', options).format(ms).replace(/\u202f/g, ' ');
}

const UPLOAD_FORM = `<html>
	<head>
	</head>
	<body>
		<h1>File Share</h1>
		
		<!-- mode = 0 - display an upload form -->
		<p>This form can be used to share a (index) file</p>
	</body>
</html>`;

function uploadResult(ok: boolean): string {
  const unresolved = '-UNRESOLVED_PATTERN-';
  const url = ok ? `<a href="${unresolved}">${unresolved}</a>` : '';
  const message = ok
    ? `<a href="${unresolved}" target="_blank">${unresolved}</a>`
    : 'no index dump file (yacy_dump_*.xml.gz)';
  return `<html>
	<head>
	</head>
	<body>
		<h1>File Share</h1>
		
		<!-- mode 1 - display the push results -->
		Result for the recently submitted file(s). You can also submit the same form using the servlet share.json to get push confirmations in json format.
		<dl>
			<dt>successall</dt><dd>false</dd>
			<dt>countsuccess</dt><dd>${unresolved}</dd>
			<dt>countfail</dt><dd>${unresolved}</dd>
		</dl>
		<table border="1">
		<tr><th>Item</th><th>URL</th><th>Success</th><th>Message</th></tr>
		<tr>
		<td>${unresolved}</td>
		<td>${url}</td>
		<td>${ok ? 'ok' : 'fail'}</td>
		<td>${message}</td>
		</tr>
		</table>
		<p>
		If you want to push again files, use this form to pre-define a number of upload forms:
		<form id="push" action="share.html" method="post" enctype="multipart/form-data" accept-charset="UTF-8">
		<input name="c" type="text" value="1" size="4" maxlength="8"><input type="submit" value="Submit">
		</form>
		</p>
		
	</body>
</html>`;
}
