import { NestedTooDeeply, parseBounded, TooManyValues } from '../lib/json.js';
import { decoded, type HttpAnswer, readable, TOO_DEEP, Unreadable } from './answer.js';
import {
  definitionsIn,
  type Element,
  isElement,
  parseHtml,
  parseMarkup,
  textOf,
  visibleText,
  within,
} from './markup.js';

/**
 * One name with one value, spelled as the peer sent them. A name with several values gives several
 * fields.
 */
export interface Field {
  readonly name: string;
  /** The canonical name. */
  readonly key: string;
  readonly value: string;
}

/** A group of fields with nested records: an answer, an item in it, a row of a table. */
export interface AnswerRecord {
  /** The name as the peer spelled it; empty if there is none. */
  readonly name: string;
  readonly fields: readonly Field[];
  readonly records: readonly AnswerRecord[];
}

/** The content of one answer, read from any form. */
export interface Answer {
  readonly form: 'json' | 'xml' | 'html' | 'text';
  readonly record: AnswerRecord;
  /** The whole text of the answer. */
  readonly text: string;
}

/** The value of a field whose JSON is an empty list. */
export const EMPTY_LIST = '[]';
const EMPTY_RECORD: AnswerRecord = { name: '', fields: [], records: [] };

/**
 * Reads HTML, XML, RSS, JSON or plain text into records.
 *
 * The first characters decide which form it is: peers leave Content-Type out or get it wrong. The
 * reader accepts JSON with unescaped quotes or control characters, XML with control characters, and
 * HTML of any kind. It refuses a text that breaks off.
 *
 * @throws PeerError PEER_ANSWER if the answer is empty or cannot be read
 */
export function readAnswer(answer: HttpAnswer): Answer {
  return readable(answer, () => {
    const text = decoded(answer.body).trim();
    if (/^(\{\s*\}|\[\s*\])?$/.test(text)) throw new Unreadable('gave an empty answer');
    if (/^[{[]/.test(text))
      return { form: 'json', record: jsonRecord('', parseJson(text), 0), text };
    if (!text.startsWith('<')) return { form: 'text', record: linesRecord(text), text };
    return isHtml(text)
      ? { form: 'html', record: htmlRecord(text), text }
      : { form: 'xml', record: readXml(text), text };
  });
}

/** The deepest nesting of an answer. No peer nests so deeply. */
const MAX_DEPTH = 64;
const TOO_MANY = 'gave an answer in JSON that has too many values';

/** The longest answer that is repaired, in characters. Seven million characters took 2 s. */
const MAX_REPAIRED_CHARS = 500_000;

/**
 * Parses JSON, and repairs the output of templates that escape nothing. Every brace must be closed.
 */
function parseJson(text: string): unknown {
  try {
    return parseBounded(text, MAX_DEPTH);
  } catch (error) {
    throwIfOverLimit(error);
    return parseRepaired(text);
  }
}

/** @throws Unreadable if the JSON exceeds a limit, because a repair cannot change that */
function throwIfOverLimit(error: unknown): void {
  if (error instanceof NestedTooDeeply) throw new Unreadable(TOO_DEEP);
  if (error instanceof TooManyValues) throw new Unreadable(TOO_MANY);
}

function parseRepaired(text: string): unknown {
  try {
    if (text.length <= MAX_REPAIRED_CHARS) return parseBounded(repairStrings(text), MAX_DEPTH);
  } catch (error) {
    throwIfOverLimit(error);
  }
  const how = /[}\]]$/.test(text) ? 'cannot be read' : 'breaks off';
  throw new Unreadable(`gave an answer in JSON that ${how}`);
}

/**
 * Escapes the strings of JSON that YaCy did not escape. A string ends at the first quote that is
 * followed by what may follow a string.
 */
function repairStrings(text: string): string {
  return text.replace(
    /"(?:([\s\S]*?)"(?=\s*(?:,\s*["{[\-\dtfn]|[:}\]]|$))|[\s\S]*)/g,
    (found, inside: string | undefined) => {
      if (inside === undefined) return found;
      try {
        JSON.parse(found);
        return found;
      } catch {
        return JSON.stringify(inside);
      }
    },
  );
}

function jsonRecord(name: string, json: unknown, depth: number): AnswerRecord {
  if (depth > MAX_DEPTH) throw new Unreadable(TOO_DEEP);
  const fields: Field[] = [];
  const records: AnswerRecord[] = [];
  const members = isObject(json) ? Object.entries(json) : [[name, json] as const];
  for (const [key, value] of members) {
    const values: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
    for (const each of values) {
      if (isObject(each) || (Array.isArray(each) && each.length > 0))
        records.push(jsonRecord(key, each, depth + 1));
      else
        fields.push(
          field(key, Array.isArray(each) ? EMPTY_LIST : String(each ?? '').toWellFormed()),
        );
    }
  }
  return { name, fields, records };
}

/** A line with a name, `:` or `=`, and a value. The name may have a prefix (`dc:title: Notes`). */
const LINE = /^((?:[a-z]+:(?=[\w.-]+\s*(?:=|:\s)))?[\w.-]+)\s*[:=]\s*(.*)$/i;

/**
 * Reads plain text in which every line is a field. If one line is not a field, the result is empty:
 * that line may be a sentence that denies the others.
 */
function linesRecord(text: string): AnswerRecord {
  const lines = text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const fields = lines.flatMap((line) => {
    const [, name, value = ''] = LINE.exec(line) ?? [];
    return name === undefined ? [] : [field(name, value)];
  });
  return fields.length === lines.length ? { name: '', fields, records: [] } : EMPTY_RECORD;
}

export function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/**
 * Reads XML or RSS. An element without child elements becomes a field, and any other becomes a
 * record. Attributes are ignored.
 */
function readXml(text: string): AnswerRecord {
  const { children, unclosed } = parseMarkup(text, true);
  const outermost = children.find(isElement);
  if (outermost === undefined)
    throw new Unreadable('gave an answer that looks like XML and holds no element');
  if (unclosed.length > 0) throw new Unreadable('gave an answer in XML that breaks off');
  return xmlRecord(outermost);
}

function xmlRecord(element: Element): AnswerRecord {
  const inside = element.children.filter(isElement);
  const isLeaf = ({ children }: Element) => !children.some(isElement);
  const leaves = inside.length === 0 ? [element] : inside.filter(isLeaf);
  const fields = leaves.map((leaf) => field(leaf.name, textOf(leaf).trim()));
  return {
    name: element.name,
    fields,
    records: inside.filter((each) => !isLeaf(each)).map(xmlRecord),
  };
}

const NO_TAG = /<!--[\s\S]*?-->|<\?[^>]*>|<!(?!doctype\s+html\b)[^>]*>/gi;
const HTML =
  /^\s*<(!doctype|html|head|body|title|meta|div|p|dl|table|form|span|pre|h[1-6]|ul|ol|b)\b/i;

/** Decides by the document type, or else by the first tag behind declarations and comments. */
function isHtml(text: string): boolean {
  return HTML.test(text.slice(0, 4096).replace(NO_TAG, ''));
}

/**
 * Reads HTML. The terms of a definition list become fields. A table row with two cells becomes a
 * field, and a row under a heading row becomes a record.
 */
function htmlRecord(text: string): AnswerRecord {
  const fields: Field[] = [];
  const records: AnswerRecord[] = [];
  for (const element of within(parseHtml(text), ['dl', 'table'])) {
    if (element.name === 'table') readRows(element, fields, records);
    else
      fields.push(...definitionsIn(element).map(([term, definition]) => fieldOf(term, definition)));
  }
  return { name: '', fields, records };
}

function readRows(table: Element, fields: Field[], records: AnswerRecord[]): void {
  let heading: readonly string[] | undefined;
  for (const row of within(table.children, ['tr'])) {
    const cells = within(row.children, ['th', 'td']);
    const [first, second] = cells;
    if (cells.length > 0 && cells.every(({ name }) => name === 'th'))
      heading = cells.map(visibleText);
    else if (heading !== undefined) {
      const named = cells.map((cell, i) => field(heading?.[i] ?? '', visibleText(cell)));
      records.push({ name: 'row', fields: named, records: [] });
    } else if (first && second && cells.length === 2) fields.push(fieldOf(first, second));
  }
}

function fieldOf(term: Element, definition: Element): Field {
  return field(visibleText(term), visibleText(definition));
}

/**
 * Returns the form in which names are compared: without prefix (`dc:`), case, whitespace and
 * punctuation. `dc:format.extent` becomes `formatextent`.
 */
export function canonical(name: string): string {
  // Most names have that form already.
  if (/^[a-z0-9]+$/.test(name)) return name;
  return name
    .trim()
    .toLowerCase()
    .replace(/^[a-z]+:(?=.)/, '')
    .replace(/[^a-z0-9]+/g, '');
}

function field(name: string, value: string): Field {
  return { name, key: canonical(name), value };
}

/** Returns the values of the fields with these canonical names, in the order of the names. */
export function fieldValues(record: AnswerRecord, ...names: readonly string[]): readonly string[] {
  const values: string[] = [];
  for (const name of names)
    for (const { key, value } of record.fields) if (key === name) values.push(value.trim());
  return values;
}

/** Returns the first value that is not empty. */
export function fieldValue(record: AnswerRecord, ...names: readonly string[]): string | undefined {
  for (const name of names)
    for (const { key, value } of record.fields) {
      const text = key === name ? value.trim() : '';
      if (text !== '') return text;
    }
  return undefined;
}

/** Returns the first value as a whole number of at least 0; undefined if it is not one. */
export function fieldNumber(record: AnswerRecord, ...names: readonly string[]): number | undefined {
  const value = fieldValue(record, ...names);
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Returns the record and all records inside it, outermost first. */
export function allRecords(record: AnswerRecord): readonly AnswerRecord[] {
  return [record, ...record.records.flatMap(allRecords)];
}
