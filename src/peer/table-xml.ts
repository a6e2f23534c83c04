import { Parser } from 'htmlparser2';
import { refuseEntities } from './markup-tree.js';
import { Unreadable } from './record.js';
import type { TableRow } from './table.js';
import {
  type Attributes,
  DEEPEST,
  MOST_ATTRIBUTES,
  ofBase64,
  type TableHead,
  type TableParser,
  textAttribute,
  unpadded,
} from './table-parser.js';
import type { KeyEscaper } from './table-xml-keys.js';

const NAME = /^[\p{L}_:][\p{L}\p{N}_:.-]*$/u;

/**
 * A table in XML: `<tables><table name><row pk><cell col>`, also where it is ill-formed: texts may hold any character.
 * What XML cannot carry may come as base64: `name-base64`, `pk-base64`, `col-base64`, `encoding="base64"`. Declared entities are
 * not expanded. Of several tables the one that was asked for is read.
 */
export class XmlTable implements TableParser {
  readonly rows: TableRow[] = [];
  head: TableHead | undefined;
  readonly #asked: string;
  readonly #decoder = new TextDecoder();
  readonly #keys: KeyEscaper | undefined;
  readonly #parser: Parser;
  /** The elements that are open. */
  readonly #path: string[] = [];
  #attributes = 0;
  #rootIsClosed = false;
  #isEnding = false;
  #isInTable = false;
  #otherName: string | undefined;
  #row: { readonly pk: string; readonly cells: Map<string, string> } | undefined;
  #cell: { readonly column: string; readonly isBase64: boolean; text: string } | undefined;

  /** @param keys mends the keys of an answer that does not escape them */
  constructor(asked: string, keys: KeyEscaper | undefined) {
    this.#asked = asked;
    this.#keys = keys;
    this.#parser = new Parser(
      {
        onprocessinginstruction: (_, data) => refuseEntities(data),
        onopentagname: (name) => this.#enter(name),
        onattribute: () => this.#countAttribute(),
        onopentag: (name, attributes) => this.#open(name, attributes),
        ontext: (text) => this.#text(text),
        onclosetag: () => this.#close(),
      },
      { xmlMode: true, decodeEntities: true },
    );
  }

  write(bytes: Buffer): void {
    this.#take(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): void {
    this.#take(this.#decoder.decode());
    this.#parser.write(this.#keys?.end() ?? '');
    this.#isEnding = true;
    this.#parser.end();
    if (!this.#rootIsClosed) throw new Unreadable('gave an answer in XML that breaks off');
    if (this.head === undefined && this.#otherName !== undefined) {
      throw new Unreadable('answered with another table than the one asked for');
    }
  }

  #take(text: string): void {
    this.#parser.write(this.#keys?.take(text) ?? text);
  }

  #enter(name: string): void {
    this.#path.push(name);
    this.#attributes = 0;
    if (this.#path.length > DEEPEST) throw new Unreadable('gave an answer that is nested too deeply');
  }

  #countAttribute(): void {
    this.#attributes += 1;
    if (this.#attributes > MOST_ATTRIBUTES) {
      throw new Unreadable('gave an element with too many attributes');
    }
  }

  #open(name: string, attributes: Attributes): void {
    if (this.#path.length === 1 && (this.#rootIsClosed || !/^tables?$/.test(name))) {
      throw new Unreadable('gave an answer in XML that is no table');
    }
    if (this.#cell !== undefined) throw new Unreadable('gave a cell with elements in it');
    if (name === 'table' && this.#path.length <= 2) this.#openTable(attributes);
    else if (!this.#isInTable) return;
    else if (this.#row === undefined && name === 'row') this.#openRow(attributes);
    else if (this.#row !== undefined && name === 'cell') this.#openCell(attributes);
    else throw new Unreadable('gave a table in XML with something else than rows and cells in it');
  }

  #openTable(attributes: Attributes): void {
    const name = textAttribute(attributes, 'name');
    if (this.head === undefined && (name === undefined || name === this.#asked)) {
      this.head = { name, columns: undefined };
      this.#isInTable = true;
    } else this.#otherName = name;
  }

  #openRow(attributes: Attributes): void {
    // A key with a quote in it that was not escaped ends early, and its rest stands as attributes.
    const pk = unpadded(textAttribute(attributes, 'pk') ?? '');
    if (pk === '' || !Object.keys(attributes).every((name) => NAME.test(name))) {
      throw new Unreadable('shows a row whose key is not there or cannot be read');
    }
    this.#row = { pk, cells: new Map() };
  }

  #openCell(attributes: Attributes): void {
    const column = textAttribute(attributes, 'col');
    if (column === undefined) throw new Unreadable('shows a cell without its column');
    this.#cell = { column, isBase64: attributes.encoding === 'base64', text: '' };
  }

  #text(text: string): void {
    if (this.#cell !== undefined) this.#cell.text += text;
    else if (this.#row !== undefined && text.trim() !== '') {
      throw new Unreadable('shows a row with text outside of its cells');
    }
  }

  #close(): void {
    const name = this.#path.pop();
    if (this.#isEnding) return;
    if (this.#path.length === 0) this.#rootIsClosed = true;
    if (name === 'cell' && this.#cell !== undefined) {
      const { column, isBase64, text } = this.#cell;
      this.#cell = undefined;
      this.#row?.cells.set(column, isBase64 ? ofBase64(text) : text);
    } else if (name === 'row' && this.#row !== undefined) {
      this.rows.push(this.#row);
      this.#row = undefined;
    } else if (name === 'table') this.#isInTable = false;
  }
}
