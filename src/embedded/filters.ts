import { domainToASCII } from 'node:url';
import { encodePath } from '../lib/text.js';

export const FILTER_NAMES = [
  'collection',
  'site',
  'url',
  'type',
  'author',
  'date',
  'size',
  'path',
] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

/** A condition on the row `d` of a document in SQL. */
export interface Filter {
  /** Its position in the query. */
  readonly start: number;
  readonly end: number;
  readonly isExcluded: boolean;
  readonly where: string;
  readonly values: readonly (string | number)[];
}

/** Extensions of files that people call by one name. */
const TYPES: ReadonlyMap<string, readonly string[]> = new Map([
  ['archive', ['zip', 'tar', 'tgz', 'gz']],
  ['image', ['png', 'jpg', 'jpeg', 'tif', 'tiff', 'webp', 'bmp']],
  ['mail', ['eml', 'msg', 'mbox']],
  ['page', ['html', 'htm', 'xhtml']],
  ['sheet', ['xlsx', 'xls', 'ods', 'csv']],
  ['slides', ['pptx', 'ppt', 'odp']],
  ['text', ['txt', 'md', 'rst', 'tex', 'log']],
  ['word', ['docx', 'doc', 'odt', 'rtf']],
  ['jpg', ['jpeg']],
  ['md', ['markdown']],
  ['html', ['htm']],
  ['tif', ['tiff']],
]);

/** Returns the filter value of one extension and no other one. */
export function exactType(extension: string): string {
  return TYPES.has(extension) ? `.${extension}` : extension;
}

/**
 * Parses a filter.
 *
 * - `collection:notes`
 * - `site:example.org`, `url:https://example.org/a`: the prefix of a URL
 * - `type:pdf`: the extension of the file, or a name for several (`image`, `word`, `sheet`);
 *   `type:.text` is the extension alone
 * - `author:ada`: a part of the author as it is spelt, but for the case of a to z
 * - `date:2024`, `date:2024-03..2024-06`, `date:..2023`: the date of the document itself, or else
 *   of its file, in UTC
 * - `size:>1M`, `size:<=10k`, `size:1M..5M`: the size as pushed
 * - `path:notes/2024`: a part of the path
 *
 * @returns undefined if the value cannot be understood
 */
export function parseFilter(
  name: FilterName,
  value: string,
): Pick<Filter, 'where' | 'values'> | undefined {
  switch (name) {
    case 'collection':
      return {
        where:
          'EXISTS (SELECT 1 FROM memberships AS m WHERE m.collection = ? AND m.document = d.id)',
        values: [value],
      };
    case 'site':
    case 'url': {
      const ranges = urlRangesOf(value);
      return {
        where: ranges.map(() => 'd.url >= ? AND d.url < ?').join(' OR '),
        values: ranges.flat(),
      };
    }
    case 'type':
      return typeFilter(value.toLowerCase().replace(/^\*\./, ''));
    case 'author':
      return { where: "d.author LIKE ? ESCAPE '\\'", values: [containing(value)] };
    case 'date':
      return dateFilter(value);
    case 'size':
      return sizeFilter(value);
    case 'path':
      return { where: "d.url LIKE ? ESCAPE '\\'", values: [containing(encodePath(value))] };
  }
}

/** The date by which documents are filtered and sorted. */
export const DATE = 'coalesce(d.date, d.last_modified)';

function typeFilter(type: string): Pick<Filter, 'where' | 'values'> {
  const extensions = type.startsWith('.') ? [type.slice(1)] : [type, ...(TYPES.get(type) ?? [])];
  const patterns = extensions.flatMap((extension) => {
    const pattern = `%.${escaped(encodePath(extension))}`;
    return [pattern, `${pattern}?%`];
  });
  return {
    where: patterns.map(() => "d.url LIKE ? ESCAPE '\\'").join(' OR '),
    values: patterns,
  };
}

function dateFilter(value: string): Pick<Filter, 'where' | 'values'> | undefined {
  const [first = '', last = first, ...more] = value.split('..');
  const [from, to] = [spanOf(first), spanOf(last)];
  if (more.length > 0 || from === undefined || to === undefined || value === '..') return undefined;
  return { where: `${DATE} >= ? AND ${DATE} < ?`, values: [from[0], to[1]] };
}

const EARLIEST = -8.64e15;
const LATEST = 8.64e15;

/** Returns the beginning and the end of a year, a month or a day; all time for an empty text. */
function spanOf(text: string): readonly [from: number, to: number] | undefined {
  if (text === '') return [EARLIEST, LATEST];
  const match = /^(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$/.exec(text);
  if (match === null) return undefined;
  const [year = 0, month, day] = match.slice(1).map((part) => part && Number(part));
  if (typeof year !== 'number') return undefined;
  const [m, d] = [Number(month ?? 1) - 1, Number(day ?? 1)];
  const from = Date.UTC(year, m, d);
  const isReal = new Date(from).getUTCMonth() === m && new Date(from).getUTCDate() === d;
  if (!isReal) return undefined;
  if (day !== undefined) return [from, Date.UTC(year, m, d + 1)];
  return [from, month === undefined ? Date.UTC(year + 1, 0) : Date.UTC(year, m + 1)];
}

const UNITS: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

function sizeFilter(value: string): Pick<Filter, 'where' | 'values'> | undefined {
  const [, compared, only] = /^([<>]=?)(.*)$/.exec(value) ?? [];
  if (compared !== undefined) {
    const bytes = bytesOf(only ?? '');
    return bytes === undefined ? undefined : { where: `d.size ${compared} ?`, values: [bytes] };
  }
  const [first = '', last = ''] = value.split('..');
  const [from, to] = [bytesOf(first || '0'), last === '' ? LATEST : bytesOf(last)];
  if (!value.includes('..') || from === undefined || to === undefined) return undefined;
  return { where: 'd.size >= ? AND d.size <= ?', values: [from, to] };
}

function bytesOf(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,12}(?:\.\d{1,3})?)([kmg]?)(?:i?b)?$/i.exec(text) ?? [];
  if (number === undefined) return undefined;
  return Math.round(Number(number) * (UNITS[unit.toLowerCase()] ?? 1));
}

function containing(text: string): string {
  return `%${escaped(text)}%`;
}

/** Escapes the wildcards of LIKE. */
function escaped(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&');
}

/** The schemes that are tried for a URL without one. */
const SCHEMES = ['https', 'http', 'file', 'smb', 'sftp', 'ftp'];

/** Returns the bounds of the URLs with a prefix, for `>=` and `<`. */
export function urlRangesOf(prefix: string): [from: string, to: string][] {
  const asciiHost = prefix.replace(
    /^([a-z]+:\/\/)?([^/:]*[^\x21-\x7e][^/:]*)/i,
    (_, scheme = '', host) => scheme + (domainToASCII(host) || host),
  );
  const encoded = asciiHost.replace(/[^\x21-\x7e]+/g, (other) =>
    encodeURIComponent(other.toWellFormed()),
  );
  const hasScheme = /^[a-z]+:\/\//i.test(encoded);
  const candidates = hasScheme ? [encoded] : SCHEMES.map((scheme) => `${scheme}://${encoded}`);
  return candidates.map((url) => {
    const from = url.replace(/^[^/]*\/\/[^/]*/, (origin) => origin.toLowerCase());
    return [from, `${from}\u{10ffff}`];
  });
}
