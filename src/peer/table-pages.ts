import { Parser } from 'htmlparser2';
import { wellFormed } from '../lib/text.js';
import { unusable } from './answer.js';
import type { HttpAnswer } from './http.js';
import { Unreadable } from './record.js';
import { type Attributes, textAttribute } from './table-parser.js';

const DEEPEST = 256;

/**
 * The names of the tables that a list shows: `{"tables":[…]}`, the same list alone, `<tables><table name>`, or the
 * choices of a page's `<select name="table">`.
 *
 * @throws PeerError PEER_ANSWER for an answer that is no list, or not whole
 */
export function readTableList(answer: HttpAnswer): readonly string[] {
  const names = read(answer, listInJson, listInMarkup);
  if (names === undefined) throw unusable(answer, 'does not show the list of its tables');
  return [...new Set(names.filter((name) => name !== '').map(wellFormed))];
}

/**
 * The columns that an editor asks for: `{"columns":[…]}`, or the page's inputs named `col_<column>`.
 *
 * @throws PeerError PEER_ANSWER for an answer that is no editor, or not whole
 */
export function readTableForm(answer: HttpAnswer): readonly string[] {
  const columns = read(answer, formInJson, formInMarkup);
  if (columns === undefined) throw unusable(answer, 'does not show the editor of a row');
  return [...new Set(columns.map(wellFormed))];
}

type Reader = (body: Buffer) => readonly string[] | undefined;

function read(answer: HttpAnswer, inJson: Reader, inMarkup: Reader): readonly string[] | undefined {
  try {
    return inJson(answer.body) ?? inMarkup(answer.body);
  } catch (error) {
    if (error instanceof Unreadable) throw unusable(answer, error.message);
    throw error;
  }
}

function listInJson(body: Buffer): readonly string[] | undefined {
  const json = parsed(body);
  const list = Array.isArray(json) ? json : memberOf(json, 'tables');
  return Array.isArray(list) ? texts(list.map((each) => memberOf(each, 'name') ?? each)) : undefined;
}

function formInJson(body: Buffer): readonly string[] | undefined {
  const columns = memberOf(parsed(body), 'columns');
  return Array.isArray(columns) ? texts(columns) : undefined;
}

function texts(values: readonly unknown[]): readonly string[] | undefined {
  return values.every((value) => typeof value === 'string') ? values : undefined;
}

function memberOf(json: unknown, name: string): unknown {
  return typeof json === 'object' && json !== null && Object.hasOwn(json, name)
    ? (json as Record<string, unknown>)[name]
    : undefined;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function listInMarkup(body: Buffer): readonly string[] | undefined {
  const names: string[] = [];
  let isList = false;
  let isInSelect = false;
  const isWhole = walk(body, (name, attributes, path) => {
    if (name === 'select') isInSelect = attributes.name === 'table';
    if ((name === 'select' && isInSelect) || (name === 'tables' && path.length === 1)) isList = true;
    if (name === 'option' && isInSelect && path.includes('select')) names.push(attributes.value ?? '');
    if (name === 'table' && path.length === 2 && path[0] === 'tables')
      names.push(textAttribute(attributes, 'name') ?? '');
  });
  return isWhole && isList ? names : undefined;
}

function formInMarkup(body: Buffer): readonly string[] | undefined {
  const columns: string[] = [];
  let isForm = false;
  const isWhole = walk(body, (name, attributes) => {
    if (!['input', 'textarea', 'select', 'button'].includes(name)) return;
    if (attributes.name === 'commitrow') isForm = true;
    if (attributes.name?.startsWith('col_')) columns.push(attributes.name.slice('col_'.length));
  });
  return isWhole && (isForm || columns.length > 0) ? columns : undefined;
}

/** Visits every element; tells whether the answer was whole. */
function walk(
  body: Buffer,
  visit: (name: string, attributes: Attributes, path: readonly string[]) => void,
): boolean {
  const path: string[] = [];
  let isEnding = false;
  let isWhole = true;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        path.push(name);
        if (path.length > DEEPEST) throw new Unreadable('gave a page that is nested too deeply');
        visit(name, attributes, path);
      },
      onclosetag(name) {
        path.pop();
        if (isEnding && ['html', 'select', 'form', 'tables'].includes(name)) isWhole = false;
      },
    },
    { decodeEntities: true, recognizeSelfClosing: true },
  );
  parser.write(body.toString());
  isEnding = true;
  parser.end();
  return isWhole;
}
