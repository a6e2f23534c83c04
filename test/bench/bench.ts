// Measures what is promised, each figure beside a baseline taken in the same run, and prints a
// table. Ends with 1 when a promise was not kept. Arguments: names of the benches to run, all when
// none is given, but `scans` and `search` only by their names: the first takes many minutes, the
// second measures no time; `--files N`: how many files `scale` takes, and how many documents wait
// in `fleet`; `--documents N`: how many documents `embedded` searches; `--scans N`: how many scans
// `scans` drops; `--type EXTENSION`: the only type that `extract` takes; `--apart`: `search` asks
// the queries that are kept apart, too.
import { parseArgs } from 'node:util';
import { embeddedBench } from './embedded.bench.js';
import { extractBench } from './extract.bench.js';
import { fleetBench } from './fleet.bench.js';
import { mirrorBench } from './mirror.bench.js';
import type { BenchRow } from './rows.js';
import { scaleBench } from './scale.bench.js';
import { scansBench } from './scans.bench.js';
import { searchBench } from './search.bench.js';
import { yacyBench } from './yacy.bench.js';

const { positionals: chosen, values } = parseArgs({
  allowPositionals: true,
  options: {
    files: { type: 'string', default: '100000' },
    documents: { type: 'string', default: '100000' },
    scans: { type: 'string', default: '200' },
    type: { type: 'string' },
    apart: { type: 'boolean', default: false },
  },
});
const files = numberOf('files');
const documents = numberOf('documents');
const scans = numberOf('scans');
const benches: Readonly<Record<string, () => Promise<readonly BenchRow[]>>> = {
  embedded: () => embeddedBench(documents),
  extract: () => extractBench(values.type),
  fleet: () => fleetBench(files),
  mirror: mirrorBench,
  scale: () => scaleBench(files),
  scans: () => scansBench(scans),
  search: () => searchBench(values.apart),
  yacy: yacyBench,
};

/** Run only if they are named. */
const BY_NAME = new Set(['scans', 'search']);

const rows: BenchRow[] = [];
for (const [name, bench] of Object.entries(benches)) {
  if (chosen.length > 0 ? !chosen.includes(name) : BY_NAME.has(name)) continue;
  process.stderr.write(`measuring ${name} …\n`);
  rows.push(...(await bench()));
}

const cells = rows.map((row) => [
  row.name,
  `${short(row.measured)} ${row.unit}`,
  `${short(row.baseline)} ${row.unit}`,
  Number.isNaN(row.ratio) ? '-' : row.ratio.toPrecision(3),
  row.promise === undefined ? '' : `${row.promise.text}: ${row.promise.kept ? 'kept' : 'NOT KEPT'}`,
]);
const table = [['what', 'measured', 'baseline', 'ratio', 'promise'], ...cells];
const widths = [0, 1, 2, 3, 4].map((i) => Math.max(...table.map((line) => (line[i] ?? '').length)));
for (const line of table)
  console.log(
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  );
if (rows.some((row) => row.promise?.kept === false)) process.exitCode = 1;

function numberOf(option: 'files' | 'documents' | 'scans'): number {
  const number = Number(values[option]);
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`--${option} ${values[option]}: a number of ${option} is needed`);
  return number;
}

function short(figure: number): string {
  if (Number.isNaN(figure)) return '-';
  return figure >= 100 ? String(Math.round(figure)) : figure.toPrecision(3);
}
