import { type Answer, type Asked, escapedXml, notFound } from './answer.js';

interface SharedFile {
  readonly bytes: Buffer;
  /** Whole seconds, in ms since the epoch. */
  readonly modified: number;
}

/** The files under `/share/`, open to everybody. */
export class Share {
  readonly #breaking = new Map<string, number>();
  readonly #files = new Map<string, SharedFile>([
    ['dump/', { bytes: Buffer.alloc(0), modified: 0 }],
  ]);

  /** Puts a file there, as the administrator does; `path` is relative to `/share/`. */
  put(path: string, content: string | Uint8Array, modified = Date.now()): void {
    this.#files.set(path, {
      bytes: Buffer.from(content),
      modified: Math.floor(modified / 1_000) * 1_000,
    });
  }

  /** Has the next answer with a file break off after so many bytes. */
  breakOff(path: string, bytes: number): void {
    this.#breaking.set(path, bytes);
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  /** A file or a listing below `/share/`. */
  get({ path, headers }: Asked): Answer {
    const name = decodeURIComponent(path.slice('/share/'.length));
    const file = this.#files.get(name);
    if (file !== undefined && !name.endsWith('/')) {
      const breaksAfter = this.#breaking.get(name);
      this.#breaking.delete(name);
      return {
        ...fileAnswer(file, headers),
        ...(breaksAfter === undefined ? {} : { breaksAfter }),
      };
    }
    const inside = [...this.#files.keys()].filter((each) =>
      each.startsWith(name.replace(/\/*$/, '/')),
    );
    if (name !== '' && inside.length === 0) return notFound(path);
    if (!path.endsWith('/')) return { status: 302, headers: { Location: `${path}/` }, body: '' };
    return this.#listing(path, name);
  }

  #listing(path: string, directory: string): Answer {
    const inside = [...this.#files.keys()].filter(
      (name) => name.startsWith(directory) && name !== directory,
    );
    const entries = new Set(
      inside.map((name) => /^[^/]+\/?/.exec(name.slice(directory.length))?.[0] ?? ''),
    );
    const rows = [...entries].sort().map((name) => {
      const href = `${path}${encodeURIComponent(name).replace(/%2F$/, '/')}`;
      return `\n<TR><TD><A HREF="${href}">${escapedXml(name)}&nbsp;</A></TD></TR>`;
    });
    const parent = `<TR><TD><A HREF="${path}../">Parent Directory</A></TD><TD></TD><TD></TD></TR>\n`;
    const body = `<HTML><HEAD><TITLE>Directory: ${path}</TITLE></HEAD><BODY>
<H1>Directory: ${path}</H1>
<TABLE BORDER=0>
${parent}${rows.join('')}</TABLE>
</BODY></HTML>
`;
    return { status: 200, headers: { 'Content-Type': 'text/html; charset=UTF-8' }, body };
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
  if (modified <= since) return { status: 304, headers: {}, body: '' };
  return { status: 200, headers, body: bytes };
}
