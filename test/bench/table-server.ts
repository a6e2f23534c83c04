// A server with one table, of as many rows as the first argument says and 8 columns, in the JSON of
// the embedded peer. Its own process, so that its work is not counted as ours. Prints its URL.
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { listen } from './listening.js';

const rows = Number(process.argv[2]);
const COLUMNS = ['name', 'street', 'city', 'price', 'amount', 'remark', 'since', 'state'];
const GROUP = 1_000;

function cells(row: number): string[] {
  return [
    `Name ${row}`,
    `${row % 97} Long Street`,
    `City of ${row % 1_009}`,
    `${(row % 10_007) / 100}`,
    String(row % 31),
    row % 5 === 0
      ? `a remark with "quotes", a comma and\na second line ${row}`
      : 'nothing to remark',
    '2026-01-01T00:00:00Z',
    row % 2 === 0 ? 'open' : 'done',
  ];
}

function* table(): Generator<string> {
  yield `{"table":"bench","columns":${JSON.stringify(COLUMNS)},"rows":[`;
  for (let first = 0; first < rows; first += GROUP) {
    let text = '';
    for (let row = first; row < Math.min(rows, first + GROUP); row += 1) {
      const pk = String(row).padStart(12, '0');
      const own = Object.fromEntries(cells(row).map((cell, i) => [COLUMNS[i], cell]));
      text += `${row === 0 ? '' : ','}\n${JSON.stringify({ pk, cells: own })}`;
    }
    yield text;
  }
  yield '\n]}\n';
}

const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' });
    Readable.from(table(), { objectMode: false }).pipe(response);
  });
});
listen(server);
