import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { DomHandler, ElementType, Parser } from 'htmlparser2';
import { NestedTooDeeply, parseBounded, TooManyValues } from '../lib/json.js';
import { parseUrl } from '../lib/text.js';
import { type Delivered, PeerError, type PeerErrorCode } from './errors.js';

/**
 * The `accept` header for records. Every form can be read. JSON is preferred, because it carries
 * any text unchanged.
 */
export const ACCEPT_RECORDS =
  'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';

/** The status line and the headers of an answer. */
export interface AnswerHead {
  /** The URL of the request. */
  readonly url: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** When the headers arrived, by our clock, in ms since the epoch. */
  readonly at: number;
  /** The `Date` header, in ms since the epoch (whole seconds); undefined if there is none. */
  readonly peerAt: number | undefined;
  /** The time from the start of the request to the headers of the answer, in ms. */
  readonly tookMs: number;
  /** Whether the peer has the body of the request; `no` if it had none. */
  readonly delivered: Delivered;
}

/** A complete answer. */
export interface HttpAnswer extends AnswerHead {
  readonly body: Buffer;
}

/** An answer whose body is read while it arrives. */
export interface StreamedAnswer extends AnswerHead {
  /**
   * The body. It can be read once. It ends only if the answer is complete; otherwise it throws
   * PeerError. A slow reader slows the peer down.
   */
  readonly chunks: AsyncIterable<Buffer>;
}

/**
 * The error of each status. A gateway sends 502 and 504 if it cannot reach the peer behind it. 408
 * means that we were too slow.
 */
const STATUSES: Readonly<Record<number, readonly [PeerErrorCode, string]>> = {
  403: ['PEER_AUTH', 'does not allow this to the user (403)'],
  404: ['PEER_REFUSED', 'has no such page (404)'],
  408: ['PEER_TIMEOUT', 'waited too long for the request (408)'],
  413: ['PEER_TOO_LARGE', 'finds the request too large (413)'],
  429: ['PEER_BUSY', 'gets too many requests (429)'],
  502: ['PEER_UNREACHABLE', 'is a gateway that did not reach the peer (502)'],
  503: ['PEER_BUSY', 'cannot serve requests now (503)'],
  504: ['PEER_TIMEOUT', 'is a gateway that got no answer of the peer (504)'],
};

/** Returns the error for the status of an answer; undefined for a success. */
export function statusError(answer: HttpAnswer): PeerError | undefined {
  const { url, status, headers, body, delivered } = answer;
  if (isSuccess(status)) return undefined;
  const to = headers.location === undefined ? '' : `, a redirect to ${headers.location}`;
  const [code, what] =
    STATUSES[status] ??
    (status >= 500
      ? (['PEER_FAILED', `failed (${status})`] as const)
      : status >= 400
        ? (['PEER_REFUSED', `refused the request (${status})`] as const)
        : (['PEER_ANSWER', `answered with ${status}${to}`] as const));
  const retryAfterMs = code === 'PEER_BUSY' ? retryAfter(answer) : undefined;
  return new PeerError(code, { url, what, status, answer: body, delivered, retryAfterMs });
}

/** Returns the answer if its status is a success. @throws PeerError otherwise */
export function succeeded(answer: HttpAnswer): HttpAnswer {
  const error = statusError(answer);
  if (error !== undefined) throw error;
  return answer;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/**
 * Returns the delay of `Retry-After` in ms. The header has seconds, or a date by the peer's clock
 * (RFC 9110, 10.2.3).
 */
function retryAfter({ headers, peerAt, at }: AnswerHead): number | undefined {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - (peerAt ?? at));
}

/** Returns the error for an answer that arrived, but does not say what it should. */
export function unusable({ url, status, body, delivered }: HttpAnswer, fault: string): PeerError {
  const what = isErrorPage(body.toString('latin1', 0, 65_536))
    ? `${fault}, but shows an error page`
    : fault;
  return new PeerError('PEER_ANSWER', { url, what, status, answer: body, delivered });
}

/** Whether the text is a server's error page. Its content has nothing to do with the request. */
function isErrorPage(text: string): boolean {
  return /HTTP ERROR:? \d{3}/.test(text);
}

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

const EMPTY_RECORD: AnswerRecord = { name: '', fields: [], records: [] };

/**
 * Thrown when an answer cannot be read. The message completes a sentence whose subject is the peer.
 */
export class Unreadable extends Error {
  constructor(
    what: string,
    readonly code: PeerErrorCode = 'PEER_ANSWER',
  ) {
    super(what);
  }
}

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

/** Returns the result of `read`. Turns Unreadable into the PeerError of this answer. */
export function readable<T>(answer: HttpAnswer, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) throw unusable(answer, error.message);
    throw error;
  }
}

/**
 * Decodes a body as UTF-8, which peers use whatever they declare. A body that is no UTF-8 is
 * decoded as ISO 8859-1.
 */
export function decoded(body: Buffer): string {
  return isUtf8(body) ? new TextDecoder().decode(body) : body.toString('latin1');
}

/** The deepest nesting of an answer. No peer nests so deeply. */
const MAX_DEPTH = 64;
const TOO_DEEP = 'gave an answer that is nested too deeply';
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

/**
 * A node of a page. This is our own type, because users of our type declarations do not have
 * htmlparser2.
 */
export interface Node {
  readonly type: string;
  readonly data?: string;
  readonly children?: readonly Node[];
}
/** An element of a page. */
export interface Element extends Node {
  readonly name: string;
  readonly attribs: Readonly<Record<string, string>>;
  readonly children: readonly Node[];
}

/** The value of a field whose JSON is an empty list. */
export const EMPTY_LIST = '[]';

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

/** Returns the pairs of `dt` and `dd` in a list. */
export function definitionsIn(list: Element): readonly (readonly [Element, Element])[] {
  const parts = within(list.children, ['dt', 'dd']);
  return parts.flatMap((definition, i) => {
    const term = parts[i - 1];
    return term?.name === 'dt' && definition.name === 'dd' ? [[term, definition] as const] : [];
  });
}

/** Returns the elements with these names. Does not search inside the elements that it found. */
export function within(nodes: readonly Node[], names: readonly string[]): Element[] {
  return nodes
    .filter(isElement)
    .flatMap((node) => (names.includes(node.name) ? [node] : within(node.children, names)));
}

export function isElement(node: Node): node is Element {
  return 'attribs' in node;
}

/** Returns the text of the node itself, without its children. */
export function wordsOf({ type, data = '' }: Node): string {
  return type === ElementType.Text ? data : '';
}

/** Returns all text inside, unchanged. */
function textOf(node: Node): string {
  return wordsOf(node) + (node.children ?? []).map(textOf).join('');
}

/** Returns all text inside as a browser shows it: runs of whitespace become one space. */
export function visibleText(element: Element): string {
  return textOf(element).replace(/\s+/g, ' ').trim();
}

/** Returns the nodes of a page. @throws Unreadable if the page breaks off */
export function parseHtml(text: string): readonly Node[] {
  const { children, unclosed } = parseMarkup(text, false);
  if (['html', 'dl', 'table', 'select', 'form'].some((name) => unclosed.includes(name))) {
    throw new Unreadable('gave an answer in HTML that breaks off');
  }
  return children;
}

/** The deepest nesting of a page. Pages nest more deeply than records. */
const MAX_ELEMENT_DEPTH = 256;

/** A tree of limited depth. It tracks the names of the open elements. */
class Tree extends DomHandler {
  readonly open: string[] = [];

  override onopentag(name: string, attributes: Record<string, string>): void {
    if (this.open.push(name) > MAX_ELEMENT_DEPTH) throw new Unreadable(TOO_DEEP);
    super.onopentag(name, attributes);
  }

  override onclosetag(): void {
    this.open.pop();
    super.onclosetag();
  }

  /** Refuses declarations of entities. They are not expanded, so the text would be incomplete. */
  override onprocessinginstruction(name: string, data: string): void {
    if (/!ENTITY\b/i.test(data))
      throw new Unreadable('gave an answer that declares entities of its own');
    super.onprocessinginstruction(name, data);
  }
}

/** Returns the nodes, and the names of the elements that are still open at the end of the text. */
function parseMarkup(
  text: string,
  xmlMode: boolean,
): { readonly children: readonly Node[]; readonly unclosed: readonly string[] } {
  const tree = new Tree();
  const parser = new Parser(tree, { xmlMode, decodeEntities: true });
  parser.write(text);
  const unclosed = [...tree.open];
  parser.end();
  return { children: tree.root.children, unclosed };
}

/**
 * Returns the form in which names are compared: without prefix (`dc:`), case, whitespace and
 * punctuation. `dc:format.extent` becomes `formatextent`.
 */
export function canonical(name: string): string {
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
  return names.flatMap((name) =>
    record.fields.filter(({ key }) => key === name).map(({ value }) => value.trim()),
  );
}

/** Returns the first value that is not empty. */
export function fieldValue(record: AnswerRecord, ...names: readonly string[]): string | undefined {
  return fieldValues(record, ...names).find((value) => value !== '');
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

/**
 * Returns one spelling of a URL for comparisons: lower-case scheme and host, no default port, no
 * fragment, uniform escapes. Peers show URLs with more or fewer escapes than they were given.
 */
export function comparableUrl(text: string): string {
  const url = parseUrl(text);
  if (url === undefined) return text.trim();
  const authority = `${url.protocol}//${url.username}${url.password ? `:${url.password}` : ''}@${url.host}`;
  const path = url.pathname.replace(/[^/]+/g, escapedOnce);
  return `${authority}${path}${url.search.replace(/[^?&=+]+/g, escapedOnce)}`;
}

export function isSameUrl(a: string, b: string): boolean {
  return a === b || comparableUrl(a) === comparableUrl(b);
}

/** Escapes part of a URL uniformly. If its escapes are no UTF-8, only their case is changed. */
function escapedOnce(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
  }
}

/** Decodes the escapes in part of a URL. Returns it unchanged if they are no UTF-8. */
export function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
