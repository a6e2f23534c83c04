import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { corpus } from '../search/corpus.js';
import type { Answer, Engine } from '../search/engine.js';
import { fts5 } from '../search/fts5.js';
import { embeddedPeer } from '../search/peer.js';
import { type Grades, gradesOf, type JudgedQuery, judgedQueries } from '../search/relevance.js';
import { type Figures, figuresOf, judged } from '../search/scores.js';
import { xapian } from '../search/xapian.js';
import { type BenchRow, row } from './rows.js';

const ROOT = resolve(import.meta.dirname, '../../..');
const SEARCH = join(ROOT, 'test/search');

interface Asked {
  readonly query: JudgedQuery;
  readonly grades: Grades;
  /** In the order of the engines. */
  readonly answers: readonly Answer[];
}

/**
 * Queries with judged documents, asked of the embedded peer of the built daemon, of FTS5 and of
 * Xapian. Prints a table by kind of query, and the queries at which peersync is not right at first.
 *
 * @param withApart whether the queries that are kept apart are asked, too; they have a table of
 *   their own, and no list
 */
export async function searchBench(withApart: boolean): Promise<BenchRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'peersync-bench-'));
  const engines: Engine[] = [];
  try {
    const documents = corpus(ROOT);
    const hasManual = documents.some(({ facts }) => facts.kind === 'manual');
    process.stderr.write(
      `  ${documents.length} documents${hasManual ? '' : ', without manual pages'}\n`,
    );
    const queries = judgedQueries(join(SEARCH, 'queries.json')).filter(
      ({ apart, needs }) => (withApart || apart !== true) && (hasManual || needs === undefined),
    );
    engines.push(await embeddedPeer(documents, join(ROOT, 'dist/cli.js'), join(directory, 'peer')));
    engines.push(fts5(documents, join(directory, 'fts5')));
    const other = xapian(documents, queries, join(SEARCH, 'ask_xapian.py'));
    if (other === undefined)
      process.stderr.write('  Xapian is left out: python3-xapian is not installed\n');
    else engines.push(other);

    const asked: Asked[] = [];
    for (const query of queries) {
      const answers: Answer[] = [];
      for (const engine of engines) answers.push(await engine.ask(query));
      asked.push({ query, grades: gradesOf(query, documents), answers });
    }
    const open = asked.filter(({ query }) => query.apart !== true);
    const apart = asked.filter(({ query }) => query.apart === true);
    printTable('search', engines, open);
    printMisses(engines, open);
    if (apart.length > 0) printTable('search, kept apart', engines, apart);
    return [
      ...rowsOf('search', engines, open),
      ...(apart.length > 0 ? rowsOf('search, kept apart', engines, apart) : []),
    ];
  } finally {
    for (const engine of engines) await engine.end();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Figures of one engine, given its place among the engines. */
function figuresFor(place: number, asked: readonly Asked[]): Figures {
  return figuresOf(
    asked.flatMap(({ answers, grades }) => {
      const answer = answers[place];
      return answer === undefined ? [] : [{ answer, grades }];
    }),
  );
}

function printTable(title: string, engines: readonly Engine[], asked: readonly Asked[]): void {
  const kinds = [...new Set(asked.map(({ query }) => query.kind))];
  const head = [
    'kind',
    'engine',
    'queries',
    'first',
    'in 3',
    'in 10',
    'MRR',
    'gain',
    'only wrong',
    'nothing',
  ];
  const lines = [...kinds, 'all'].flatMap((kind) =>
    engines.map(({ name }, place) => {
      const own = asked.filter(({ query }) => kind === 'all' || query.kind === kind);
      const figures = figuresFor(place, own);
      return [
        place === 0 ? kind : '',
        name,
        own.length,
        figures.first,
        figures.inThree,
        figures.inTen,
        share(figures.meanReciprocalRank),
        share(figures.gain),
        figures.onlyWrong,
        figures.nothing,
      ].map(String);
    }),
  );
  const table = [head, ...lines];
  const widths = head.map((_, i) => Math.max(...table.map((line) => (line[i] ?? '').length)));
  console.log(`${title}: ${figuresFor(0, asked).answerable} of ${asked.length} have an answer`);
  for (const line of table)
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  console.log();
}

/** The place of the first right document by each engine, where peersync has none at the top. */
function printMisses(engines: readonly Engine[], asked: readonly Asked[]): void {
  console.log(`not right at first (${engines.map(({ name }) => name).join(', ')}):`);
  for (const { query, grades, answers } of asked) {
    const all = answers.map((answer) => judged(answer, grades));
    const [own] = all;
    if (own === undefined || own.rank === 1 || (grades.size === 0 && !own.isOnlyWrong)) continue;
    const ranks = all.map(({ rank, isOnlyWrong }) => rank ?? (isOnlyWrong ? 'wrong' : '-'));
    console.log(`  ${ranks.join(', ').padEnd(20)}  ${query.kind.padEnd(10)}  ${query.query}`);
  }
  console.log();
}

/** Figures of peersync, each beside the best of the other engines. */
function rowsOf(title: string, engines: readonly Engine[], asked: readonly Asked[]): BenchRow[] {
  const [own, ...others] = engines.map((_, place) => figuresFor(place, asked));
  if (own === undefined) return [];
  const most = (value: (figures: Figures) => number) => Math.max(...others.map(value));
  return [
    row(
      `${title}: right at first`,
      own.first,
      most(({ first }) => first),
      'queries',
    ),
    row(
      `${title}: right in ten`,
      own.inTen,
      most(({ inTen }) => inTen),
      'queries',
    ),
    row(
      `${title}: mean reciprocal rank`,
      own.meanReciprocalRank,
      most(({ meanReciprocalRank }) => meanReciprocalRank),
      '',
    ),
  ];
}

function share(figure: number): string {
  return Number.isNaN(figure) ? '-' : figure.toFixed(3);
}
