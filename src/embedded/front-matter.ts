import { dateOf } from '../content/readers/document-reader.js';

/** The properties at the start of a Markdown file that are read. */
interface Properties {
  readonly title?: string;
  readonly author?: string;
  /** In ms since the epoch. */
  readonly date?: number;
}

const RULE = '---';
/** A line that begins with a key. */
const KEY = /^[\p{L}\p{N}_"'][^:]{0,100}:(?:\s|$)/u;
/** A further line of a value, an item of a list, the end of one, or a comment. */
const MORE = /^(?:\s|-\s|-$|[\]}#])/;
/** A line `key: value`, without indentation. */
const PROPERTY = /^(title|author|date):[ \t]+(.*)$/i;
/** A value in quotes, with nothing but a comment behind it. */
const QUOTED = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^']|'')*)')\s*(?:#.*)?$/;
/** The first character of a value of YAML that is no plain text: a list, an alias, a block. */
const NOT_PLAIN = /^[[\]{}|>&*!%@`"'#]/;
/** A date at the start of a value. */
const DAY = /^\d{4}-\d\d-\d\d(?!\d)/;

/**
 * Returns the number of lines that the properties before a text take (front matter), between two
 * lines `---`; 0 if there are none. A line `---` may also be a rule with text below it.
 */
export function endOfProperties(lines: readonly string[]): number {
  if (lines[0]?.replace(/^\ufeff/, '').trimEnd() !== RULE) return 0;
  const end = lines.findIndex((line, i) => i > 0 && line.trimEnd() === RULE);
  const filled = lines.slice(1, Math.max(1, end)).filter((line) => line.trim() !== '');
  const keys = filled.filter((line) => KEY.test(line));
  const areProperties = filled.every((line) => KEY.test(line) || MORE.test(line));
  return areProperties && (keys.length > 0 || filled.length === 0) ? end + 1 : 0;
}

/**
 * Reads the title, the author and the day of the date from the properties before a text. Only lines
 * of the form `key: value` are read; lists, blocks and other YAML are left out. Of a key that comes
 * twice, the first counts.
 */
export function readProperties(lines: readonly string[]): Properties {
  const values = new Map<string, string>();
  for (const line of lines.slice(1, Math.max(0, endOfProperties(lines) - 1))) {
    const [, key = '', value = ''] = PROPERTY.exec(line.trimEnd()) ?? [];
    const text = plainValue(value);
    const name = key.toLowerCase();
    if (text !== '' && !values.has(name)) values.set(name, text);
  }
  const [title, author] = [values.get('title'), values.get('author')];
  const date = dateOf(DAY.exec(values.get('date') ?? '')?.[0]);
  return {
    ...(title !== undefined && { title }),
    ...(author !== undefined && { author }),
    ...(date !== undefined && { date }),
  };
}

/** Returns the text of a value without quotes and comment; empty if it is no text. */
function plainValue(value: string): string {
  const [isQuoted, double, single] = QUOTED.exec(value) ?? [];
  if (isQuoted !== undefined)
    return double?.replace(/\\(["\\])/g, '$1') ?? single?.replaceAll("''", "'") ?? '';
  return NOT_PLAIN.test(value) ? '' : value.replace(/\s+#.*$/, '').trim();
}
