import { wellFormed } from '../lib/text.js';
import { type Answer, type AnswerRecord, type Field, Unreadable } from './record.js';

const DEEPEST = 64;

/**
 * JSON, and what templates without escaping make of it: a text may hold quotes, backslashes and control characters
 * that JSON forbids. It must still be whole: every brace closed.
 */
export function readJson(text: string): Answer {
  return { form: 'json', record: recordOf('', parse(text), 0), prose: '' };
}

type Json = string | number | boolean | null | readonly Json[] | JsonObject;
/** The members in order, also such as have the same name. */
class JsonObject {
  constructor(readonly members: readonly (readonly [string, Json])[]) {}
}

function parse(text: string): Json {
  try {
    return JSON.parse(text, (_, value: unknown) =>
      typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonObject)
        ? new JsonObject(Object.entries(value))
        : value,
    ) as Json;
  } catch {
    return new LooseParser(text).parse();
  }
}

function recordOf(name: string, json: Json, depth: number): AnswerRecord {
  if (depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
  const fields: Field[] = [];
  const records: AnswerRecord[] = [];
  const members = json instanceof JsonObject ? json.members : ([[name, json]] as const);
  for (const [key, value] of members) {
    const values = Array.isArray(value) && value.length > 0 ? (value as readonly Json[]) : [value as Json];
    for (const each of values) {
      if (isScalar(each)) fields.push({ name: key, value: each === null ? '' : wellFormed(String(each)) });
      else if (each instanceof JsonObject || each.length > 0) records.push(recordOf(key, each, depth + 1));
      else fields.push({ name: key, value: '[]' });
    }
  }
  return { name, fields, records };
}

function isScalar(json: Json): json is string | number | boolean | null {
  return typeof json !== 'object' || json === null;
}

const BLANKS = /\s*/y;
const KEY_ENDS = /"\s*:/y;
const VALUE_ENDS = /"\s*(?:,\s*["{[\-\dtfn]|[}\]]|$)/y;
const BARE = /[^\s,{}[\]":]+/y;

class LooseParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Json {
    const value = this.#value(0);
    this.#take(BLANKS);
    if (this.#at < this.#text.length) throw this.#broken();
    return value;
  }

  #value(depth: number): Json {
    if (depth > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
    this.#take(BLANKS);
    switch (this.#text[this.#at]) {
      case '{':
        return new JsonObject(this.#list('}', () => [this.#key(), this.#value(depth + 1)] as const));
      case '[':
        return this.#list(']', () => this.#value(depth + 1));
      case '"':
        return this.#string(VALUE_ENDS);
      default:
        return this.#take(BARE) ?? this.#fail();
    }
  }

  #list<T>(end: string, element: () => T): T[] {
    const list: T[] = [];
    this.#at += 1;
    for (;;) {
      this.#take(BLANKS);
      if (this.#text[this.#at] === end) break;
      list.push(element());
      this.#take(BLANKS);
      if (this.#text[this.#at] === ',') this.#at += 1;
      else if (this.#text[this.#at] !== end) throw this.#broken();
    }
    this.#at += 1;
    return list;
  }

  #key(): string {
    if (this.#text[this.#at] !== '"') throw this.#broken();
    const key = this.#string(KEY_ENDS);
    this.#take(BLANKS);
    this.#at += 1;
    return key;
  }

  /** A text ends at the first quote that is followed by what may follow a text there. */
  #string(ends: RegExp): string {
    const start = this.#at + 1;
    for (
      let quote = this.#text.indexOf('"', start);
      quote !== -1;
      quote = this.#text.indexOf('"', quote + 1)
    ) {
      ends.lastIndex = quote;
      if (!ends.test(this.#text)) continue;
      this.#at = quote + 1;
      return unescaped(this.#text.slice(start, quote));
    }
    this.#at = this.#text.length;
    throw this.#broken();
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at = pattern.lastIndex;
    return match[0];
  }

  #fail(): never {
    throw this.#broken();
  }

  #broken(): Unreadable {
    const where =
      this.#at >= this.#text.length ? 'breaks off' : `cannot be read from character ${this.#at} on`;
    return new Unreadable(`gave an answer in JSON that ${where}`);
  }
}

function unescaped(raw: string): string {
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    return raw;
  }
}
