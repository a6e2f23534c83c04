import { type Answer, emptyPage, escapedXml, failed, page } from './answer.js';
import { type Form, first, type ReadForm } from './form.js';

const KEY_BYTES = 12;
/** Tables that every peer has. */
const OWN = ['pkcounter', 'stats', 'robots', 'api'];

type Row = Map<string, string>;

/**
 * The tables of a peer: keys have 12 bytes, longer ones are cut and shorter ones filled with NUL.
 */
export class Tables {
  /** By name; rows by the 12 bytes of their key, each byte a character. */
  readonly #tables = new Map<string, Map<string, Row>>(OWN.map((name) => [name, new Map()]));
  #counter = 0;

  /** The cells of a row, for tests. */
  row(table: string, key: string): Readonly<Record<string, string>> | undefined {
    const row = this.#tables.get(table)?.get(keyOf(key));
    return row === undefined ? undefined : Object.fromEntries(row);
  }

  names(): string[] {
    return [...this.#tables.keys()];
  }

  /** `table_p`, which makes tables when they are absent. */
  tableP(path: string, form: ReadForm): Answer {
    const asked: Form = typeof form === 'string' ? new Map() : form;
    const name = first(asked, 'table');
    if (name !== undefined) this.#change(name, asked);
    if (!path.endsWith('.html')) return emptyPage();
    const rows = this.#rows(name, asked) ?? [];
    return page(
      'text/html',
      `<table>${rows.map(() => '<tr class="TableCellDark"></tr>').join('')}</table>`,
    );
  }

  /** `Tables_p`, which fails when a table is to be changed that it does not know. */
  tablesP(path: string, form: ReadForm): Answer {
    const asked: Form = typeof form === 'string' ? new Map() : form;
    const name = first(asked, 'table');
    if (name !== undefined) {
      const changes = ['commitrow', 'deleterows', 'deletetable'].some((verb) => asked.has(verb));
      if (changes && !this.#tables.has(name)) return failed(path);
      this.#change(name, asked);
    }
    if (path.endsWith('.html')) return page('text/html', listHtml(this.names()));
    if (!path.endsWith('.xml')) return emptyPage();
    return page('text/xml', tableXml(name, this.#rows(name, asked)));
  }

  #change(name: string, form: Form): void {
    if (form.has('deletetable')) this.#tables.delete(name);
    if (form.has('deleterows')) {
      for (const value of [...form.values()].flat().filter((each) => each.startsWith('pk_'))) {
        this.#tables.get(name)?.delete(keyOf(value.slice('pk_'.length)));
      }
    }
    if (form.has('commitrow')) this.#set(name, form);
  }

  #set(name: string, form: Form): void {
    let table = this.#tables.get(name);
    if (table === undefined) {
      table = new Map();
      this.#tables.set(name, table);
    }
    let key = first(form, 'pk');
    if (key === undefined) {
      this.#counter += 1;
      key = String(this.#counter).padStart(KEY_BYTES, '0');
    }
    const row = table.get(keyOf(key)) ?? new Map<string, string>();
    table.set(keyOf(key), row);
    for (const [parameter, [value = '']] of form) {
      if (parameter.startsWith('col_')) row.set(parameter.slice('col_'.length), value);
    }
  }

  #rows(name: string | undefined, form: Form): [string, Row][] | undefined {
    const table = name === undefined ? undefined : this.#tables.get(name);
    if (table === undefined) return undefined;
    const sorted = [...table].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.slice(0, limitOf(first(form, 'count')));
  }
}

function keyOf(key: string): string {
  const bytes = Buffer.alloc(KEY_BYTES);
  Buffer.from(key).copy(bytes);
  return bytes.toString('latin1');
}

function shownKey(key: string): string {
  return Buffer.from(key, 'latin1').toString('utf8');
}

function limitOf(count: string | undefined): number {
  if (count === undefined || count === 'all') return Number.POSITIVE_INFINITY;
  if (!/^-?\d+$/.test(count)) return 10;
  return Math.max(0, Number(count));
}

function columnsOf(rows: readonly (readonly [string, Row])[]): string[] {
  return [...new Set(rows.flatMap(([, row]) => [...row.keys()]))];
}

/** Only cells and columns are escaped; a key with its NULs is written as it is, which is no XML. */
function tableXml(name: string | undefined, rows: readonly [string, Row][] | undefined): string {
  if (name === undefined || rows === undefined) return '<tables>\n\n</tables>\n';
  const columns = columnsOf(rows);
  const shown = rows.map(([key, row], n) => {
    const cells = columns.map((column) => {
      return `<cell col="${escapedXml(column)}">${escapedXml(row.get(column) ?? '')}</cell>\n`;
    });
    return `<row count="${n}" pk="${shownKey(key)}">\n${cells.join('')}</row>\n`;
  });
  return `<tables>\n\n<table name="${escapedXml(name)}">\n${shown.join('')}</table>\n\n</tables>\n`;
}

function listHtml(names: readonly string[]): string {
  const options = ['', ...names].map((name) => {
    const escaped = escapedXml(name);
    return `            \n            <option value="${escaped}" >${escaped}</option>\n`;
  });
  return `<html xmlns="http://www.w3.org/1999/xhtml">
  <head><title>YaCy 'model': Table Viewer</title></head>
  <body id="Tables">
    <form action="Tables_p.html" method="get" accept-charset="UTF-8">
        <select name="table" onchange='this.form.submit()'>
${options.join('')}        </select>
        <select name="count" onchange='this.form.submit()'>
            <option value="10">10</option>
            <option value="100" selected="selected">100</option>
            <option value="1000">1000</option>
            <option value="all">all</option>
        </select>
    </form>
  </body>
</html>
`;
}
