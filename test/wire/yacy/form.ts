/** The parameters of a request by name, each with its values in the order in which they came. */
export type Form = ReadonlyMap<string, readonly string[]>;

/** The form of a request: its parameters, `none` if it is unreadable, or `too large`. */
export type ReadForm = Form | 'none' | 'too large';

const MAX_URLENCODED = 200_000;
const MAX_KEYS = 1_000;

/** Reads the parameters of the target and of the body, as the peer does. */
export function readForm(query: string, contentType: string, body: Buffer): ReadForm {
  const form = new Map<string, string[]>();
  addUrlencoded(form, query);
  if (contentType.startsWith('application/x-www-form-urlencoded')) {
    if (body.length > MAX_URLENCODED) return 'too large';
    addUrlencoded(form, body.toString('latin1'));
    if (form.size > MAX_KEYS) return 'too large';
  }
  if (contentType.startsWith('multipart/form-data')) {
    const parts = partsOf(body, /boundary="?([^";]+)"?/.exec(contentType)?.[1]);
    if (parts === undefined) return 'none';
    addParts(form, parts);
  }
  return form.size === 0 ? 'none' : form;
}

/** The first value of a parameter; undefined where there is none, or nothing could be read. */
export function first(form: ReadForm, name: string): string | undefined {
  return typeof form === 'string' ? undefined : form.get(name)?.[0];
}

function add(form: Map<string, string[]>, name: string, value: string): void {
  const values = form.get(name);
  if (values === undefined) form.set(name, [value]);
  else values.push(value);
}

function addUrlencoded(form: Map<string, string[]>, text: string): void {
  for (const [name, value] of new URLSearchParams(text)) add(form, name, value);
}

interface Part {
  readonly name: string;
  readonly filename: string | undefined;
  readonly content: Buffer;
}

/** The parts, or undefined where the body is no whole multipart. */
function partsOf(body: Buffer, boundary: string | undefined): Part[] | undefined {
  if (boundary === undefined) return undefined;
  const parts: Part[] = [];
  const mark = Buffer.from(`--${boundary}`);
  let at = body.indexOf(mark);
  while (at !== -1) {
    const start = at + mark.length;
    if (body.toString('latin1', start, start + 2) === '--') return parts;
    const next = body.indexOf(`\r\n--${boundary}`, start, 'latin1');
    const head = body.indexOf('\r\n\r\n', start, 'latin1');
    if (next === -1 || head === -1 || head > next) return undefined;
    const headers = body.toString('utf8', start, head);
    parts.push({
      name: /[; ]name="([^"]*)"/.exec(headers)?.[1] ?? '',
      filename: /filename="([^"]*)"/.exec(headers)?.[1],
      content: body.subarray(head + 4, Math.max(next, head + 4)),
    });
    at = next + 2;
  }
  return undefined;
}

/**
 * A file part becomes two parameters: its name, with the filename, and its name with `$file`, with
 * the content. The content of a single file is taken for text as it is, unless its name ends in
 * `.gz`; of several all are given in base64.
 */
function addParts(form: Map<string, string[]>, parts: readonly Part[]): void {
  const files = parts.filter(({ filename }) => filename !== undefined).length;
  for (const { name, filename, content } of parts) {
    if (filename === undefined) {
      add(form, name, content.toString('utf8'));
      continue;
    }
    const inBase64 = files > 1 || filename.endsWith('.gz');
    add(form, name, filename.endsWith('.gz') ? `${filename}.base64` : filename);
    add(form, `${name}$file`, content.toString(inBase64 ? 'base64' : 'utf8'));
  }
}
