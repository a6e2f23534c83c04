import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { DomHandler, ElementType, Parser } from 'htmlparser2';
import { NestedTooDeeply, parseBounded, TooManyValues } from '../lib/json.js';
import { parseUrl } from '../lib/text.js';
import { type Delivered, PeerError, type PeerErrorCode } from './errors.js';

/** Any form can be read; JSON carries every text as it is. */
export const ACCEPT_RECORDS =
  'application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.8, */*;q=0.1';

/** An answer whose head has come. */
export interface AnswerHead {
  /** Of the request. */
  readonly url: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** When the head of the answer came, by our clock, in ms since the epoch. */
  readonly at: number;
  /** What the peer's clock showed then (whole seconds, as ms), where the answer carries a date. */
  readonly peerAt: number | undefined;
  /** From the beginning of the request to the head of the answer, in ms. */
  readonly tookMs: number;
  /** Whether the body of the request is with the peer: `no` where there was none. */
  readonly delivered: Delivered;
}

/** An answer that came whole. */
export interface HttpAnswer extends AnswerHead {
  readonly body: Buffer;
}

/** An answer whose body comes while it is read. */
export interface StreamedAnswer extends AnswerHead {
  /**
   * The body, to be read once. Ends only where the answer ended as it should; otherwise throws
   * PeerError. The peer is not read faster than the reader takes it.
   */
  readonly chunks: AsyncIterable<Buffer>;
}

/**
 * What a status stands for. A gateway's 502 and 504 say that the peer behind it was not there, 408
 * that we were slow.
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

/** The error that the status of an answer stands for; undefined for success. */
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

/** The answer, where its status is one of success. @throws PeerError */
export function succeeded(answer: HttpAnswer): HttpAnswer {
  const error = statusError(answer);
  if (error !== undefined) throw error;
  return answer;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Seconds, or a moment of the peer's clock (RFC 9110, 10.2.3). */
function retryAfter({ headers, peerAt, at }: AnswerHead): number | undefined {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - (peerAt ?? at));
}

/** The error for an answer that came, but does not say what it should. */
export function unusable({ url, status, body, delivered }: HttpAnswer, fault: string): PeerError {
  const what = isErrorPage(body.toString('latin1', 0, 65_536))
    ? `${fault}, but shows an error page`
    : fault;
  return new PeerError('PEER_ANSWER', { url, what, status, answer: body, delivered });
}

/** A server's page about its failure may show anything besides. */
function isErrorPage(text: string): boolean {
  return /HTTP ERROR:? \d{3}/.test(text);
}

/** One name with one value, as the peer wrote them; a repeated name stands once for each value. */
export interface Field {
  readonly name: string;
  /** The canonical name. */
  readonly key: string;
  readonly value: string;
}

/**
 * Fields that belong together, and the records inside: an answer, an item of it, a row of a table.
 */
export interface AnswerRecord {
  /** As the peer wrote it; empty for what has no name. */
  readonly name: string;
  readonly fields: readonly Field[];
  readonly records: readonly AnswerRecord[];
}

/** What one answer says, whatever its form was. */
export interface Answer {
  readonly form: 'json' | 'xml' | 'html' | 'text';
  readonly record: AnswerRecord;
  /** All of it. */
  readonly text: string;
}

const NOTHING: AnswerRecord = { name: '', fields: [], records: [] };

/**
 * An answer that cannot be read; the message is the end of a sentence that begins with the peer.
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
 * Reads HTML, XML, RSS, JSON-like or plain text into records.
 *
 * The form is told from the first characters: peers leave Content-Type out or get it wrong. JSON
 * with quotes or control characters that are not escaped, XML with control characters, and HTML of
 * any kind are read; what ends too early is not.
 *
 * @throws PeerError PEER_ANSWER for an empty or unreadable answer
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

/** What `read` makes of an answer; what it cannot read is the peer's error. */
export function readable<T>(answer: HttpAnswer, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unreadable) throw unusable(answer, error.message);
    throw error;
  }
}

/** UTF-8, as peers write whatever they declare, else ISO 8859-1. */
export function decoded(body: Buffer): string {
  return isUtf8(body) ? new TextDecoder().decode(body) : body.toString('latin1');
}

/** Deeper answers are of no peer. */
const DEEPEST = 64;
const TOO_DEEP = 'gave an answer that is nested too deeply';
const TOO_MANY = 'gave an answer in JSON that has too many values';

/** Longest answer that is mended, in characters: seven million took 2 s. */
const LONGEST_MENDED = 500_000;

/**
 * JSON, and what templates without escaping make of it. It must still be whole: every brace closed.
 */
function parseJson(text: string): unknown {
  try {
    return parseBounded(text, DEEPEST);
  } catch (error) {
    refuseUnbounded(error);
    return parseMended(text);
  }
}

/** @throws Unreadable for JSON that is beyond the bounds, which mending does not change */
function refuseUnbounded(error: unknown): void {
  if (error instanceof NestedTooDeeply) throw new Unreadable(TOO_DEEP);
  if (error instanceof TooManyValues) throw new Unreadable(TOO_MANY);
}

function parseMended(text: string): unknown {
  try {
    if (text.length <= LONGEST_MENDED) return parseBounded(mendedJson(text), DEEPEST);
  } catch (error) {
    refuseUnbounded(error);
  }
  const how = /[}\]]$/.test(text) ? 'cannot be read' : 'breaks off';
  throw new Unreadable(`gave an answer in JSON that ${how}`);
}

/**
 * YaCy escapes nothing: a text ends at the first quote behind which a text may end, and all in it
 * belongs to it.
 */
function mendedJson(text: string): string {
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
  if (depth > DEEPEST) throw new Unreadable(TOO_DEEP);
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

/** A line of a name, `:` or `=`, and a value; the name may have a prefix (`dc:title: Notes`). */
const LINE = /^((?:[a-z]+:(?=[\w.-]+\s*(?:=|:\s)))?[\w.-]+)\s*[:=]\s*(.*)$/i;

/**
 * Plain text of which every line is a field. A sentence among them may deny the rest, and then
 * nothing is known.
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
  return fields.length === lines.length ? { name: '', fields, records: [] } : NOTHING;
}

/**
 * What a page is made of. Not a type of htmlparser2, which nobody has who uses the declarations of
 * the library.
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

/** What an empty list of JSON is read as. */
export const EMPTY_LIST = '[]';

export function isObject(json: unknown): json is Record<string, unknown> {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/**
 * XML and RSS: an element without elements in it is a field, any other a record. Attributes are
 * nothing.
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

/** By the document type, else by the first tag behind declarations and comments. */
function isHtml(text: string): boolean {
  return HTML.test(text.slice(0, 4096).replace(NO_TAG, ''));
}

/**
 * HTML: the terms of a definition list are fields, so are two-celled rows of a table; a row under a
 * heading row is a record.
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
    if (cells.length > 0 && cells.every(({ name }) => name === 'th')) heading = cells.map(visible);
    else if (heading !== undefined) {
      const named = cells.map((cell, i) => field(heading?.[i] ?? '', visible(cell)));
      records.push({ name: 'row', fields: named, records: [] });
    } else if (first && second && cells.length === 2) fields.push(fieldOf(first, second));
  }
}

function fieldOf(term: Element, definition: Element): Field {
  return field(visible(term), visible(definition));
}

/** The pairs of `dt` and `dd` in a list. */
export function definitionsIn(list: Element): readonly (readonly [Element, Element])[] {
  const parts = within(list.children, ['dt', 'dd']);
  return parts.flatMap((definition, i) => {
    const term = parts[i - 1];
    return term?.name === 'dt' && definition.name === 'dd' ? [[term, definition] as const] : [];
  });
}

/** The elements of these names in the nodes, not looking into those found. */
export function within(nodes: readonly Node[], names: readonly string[]): Element[] {
  return nodes
    .filter(isElement)
    .flatMap((node) => (names.includes(node.name) ? [node] : within(node.children, names)));
}

export function isElement(node: Node): node is Element {
  return 'attribs' in node;
}

/** What a node itself says, without those inside. */
export function wordsOf({ type, data = '' }: Node): string {
  return type === ElementType.Text ? data : '';
}

/** All text inside, as it is. */
function textOf(node: Node): string {
  return wordsOf(node) + (node.children ?? []).map(textOf).join('');
}

/** All text inside, as a page shows it: blanks folded. */
export function visible(element: Element): string {
  return textOf(element).replace(/\s+/g, ' ').trim();
}

/** The nodes of a page. @throws Unreadable for one that is not whole */
export function parseHtml(text: string): readonly Node[] {
  const { children, unclosed } = parseMarkup(text, false);
  if (['html', 'dl', 'table', 'select', 'form'].some((name) => unclosed.includes(name))) {
    throw new Unreadable('gave an answer in HTML that breaks off');
  }
  return children;
}

/** Pages are nested more deeply than records. */
const DEEPEST_ELEMENT = 256;

/** A tree of limited depth, which knows the names of the elements that are open. */
class Tree extends DomHandler {
  readonly open: string[] = [];

  override onopentag(name: string, attributes: Record<string, string>): void {
    if (this.open.push(name) > DEEPEST_ELEMENT) throw new Unreadable(TOO_DEEP);
    super.onopentag(name, attributes);
  }

  override onclosetag(): void {
    this.open.pop();
    super.onclosetag();
  }

  /** Entities that are declared are not expanded, so what the answer says cannot be known. */
  override onprocessinginstruction(name: string, data: string): void {
    if (/!ENTITY\b/i.test(data))
      throw new Unreadable('gave an answer that declares entities of its own');
    super.onprocessinginstruction(name, data);
  }
}

/** The nodes, and the names of the elements that were still open at the end of the text. */
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
 * Names are compared without prefix (`dc:`), case, blanks and punctuation: `dc:format.extent` is
 * `formatextent`.
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

/** The values of the fields that have one of these canonical names, in the order of the names. */
export function fieldValues(record: AnswerRecord, ...names: readonly string[]): readonly string[] {
  return names.flatMap((name) =>
    record.fields.filter(({ key }) => key === name).map(({ value }) => value.trim()),
  );
}

/** The first value that is not empty. */
export function fieldValue(record: AnswerRecord, ...names: readonly string[]): string | undefined {
  return fieldValues(record, ...names).find((value) => value !== '');
}

/** A whole number of at least 0, or undefined. */
export function fieldNumber(record: AnswerRecord, ...names: readonly string[]): number | undefined {
  const value = fieldValue(record, ...names);
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** The record and all inside it, outermost first. */
export function allRecords(record: AnswerRecord): readonly AnswerRecord[] {
  return [record, ...record.records.flatMap(allRecords)];
}

/**
 * One spelling of a URL for comparing: lower-case scheme and host, no default port, no fragment,
 * and one way to escape. Peers give URLs back escaped more or less than they got them.
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

/**
 * A part of a URL in one spelling; where it holds escapes of no text, only their case is changed.
 */
function escapedOnce(part: string): string {
  try {
    return encodeURIComponent(decodeURIComponent(part));
  } catch {
    return part.replace(/%[0-9a-f]{2}/gi, (code) => code.toUpperCase());
  }
}

/** A part of a URL as it is read; one that holds escapes of no text as it stands. */
export function unescaped(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
