import type { CitationsMirrorConfig, Config, ShareMirrorConfig, TableMirrorConfig } from './config.js';
import { nearest } from './nearest.js';
import type { Problem } from './problems.js';
import { isTablePattern, tablePattern } from './table-pattern.js';

/** One mirror of the configuration, whatever it follows. */
interface Mirror {
  readonly key: string;
  readonly name: string;
  readonly path: string;
  /** What it writes, in one spelling; where it writes many files, a pattern that takes them all. */
  readonly target: string;
  readonly isOneFile: boolean;
}

/**
 * What is wrong between the values of mirrors: names that stand twice, mirrors that would write the same file, templates
 * that leave out what tells their files apart, folders that are not watched, and options that exclude each other.
 */
export function mirrorContradictions(config: Config): Problem[] {
  const { shares, tables, citations } = config.mirror;
  const mirrors = mirrorsOf(config);
  return [
    ...names(mirrors),
    ...shares.flatMap((share, i) => shareProblems(share, `mirror.shares[${i}]`)),
    ...tables.flatMap((table, i) => tableProblems(table, `mirror.tables[${i}]`)),
    ...citations.flatMap((each, i) => citationsProblems(each, `mirror.citations[${i}]`, config)),
    ...sharedFiles(mirrors),
  ];
}

function mirrorsOf({ mirror }: Config): Mirror[] {
  return [
    ...mirror.shares.map(({ name, path, data }, i) => ({
      key: `mirror.shares[${i}]`,
      name,
      path,
      target: comparable(isTablePattern(data) ? path.replaceAll('{data}', () => data) : path),
      isOneFile: !isTablePattern(data),
    })),
    ...mirror.tables.map(({ name, path, table }, i) => ({
      key: `mirror.tables[${i}]`,
      name,
      path,
      target: comparable(path.replaceAll('{table}', () => table)),
      isOneFile: !isTablePattern(table),
    })),
    ...mirror.citations.map(({ name, path, folder }, i) => ({
      key: `mirror.citations[${i}]`,
      name,
      path,
      target: comparable(path.replaceAll('{folder}', () => folder).replaceAll('{path}', '*')),
      isOneFile: false,
    })),
  ];
}

function names(mirrors: readonly Mirror[]): Problem[] {
  const first = new Map<string, Mirror>();
  return mirrors.flatMap((mirror): Problem[] => {
    const other = first.get(mirror.name);
    if (other === undefined) {
      first.set(mirror.name, mirror);
      return [];
    }
    const expected = `a name that ${other.key} does not have: give one of the two a "name"`;
    return [{ path: `${mirror.key}.name`, received: JSON.stringify(mirror.name), expected }];
  });
}

function shareProblems({ data, path }: ShareMirrorConfig, key: string): Problem[] {
  if (!isTablePattern(data) || path.includes('{data}')) return [];
  const expected = 'a path with "{data}" in it: each object that the pattern matches needs a file of its own';
  return [{ path: `${key}.path`, received: JSON.stringify(path), expected }];
}

function tableProblems(table: TableMirrorConfig, key: string): Problem[] {
  const problems: Problem[] = [];
  const tell = (name: keyof TableMirrorConfig, expected: string) => {
    problems.push({ path: `${key}.${name}`, received: JSON.stringify(table[name]), expected });
  };
  if (isTablePattern(table.table) && !table.path.includes('{table}'))
    tell('path', 'a path with "{table}" in it: each table that the pattern matches needs a file of its own');
  const unknown = unknownVariable(table.path, ['table']);
  if (unknown !== undefined) tell('path', `"{table}", and not "${unknown}"`);
  const { columns = [] } = table;
  if (columns.includes('pk')) tell('columns', 'columns without "pk": the key comes first by itself');
  const twice = columns.find((column, i) => columns.indexOf(column) < i);
  if (twice !== undefined) tell('columns', `each column once, and not ${JSON.stringify(twice)} again`);
  if (table.neutralise && table.format !== 'csv')
    tell('neutralise', `false, or "format": "csv": spreadsheets take no formulas from ${table.format}`);
  if (table.deletes && !table.edit)
    tell(
      'deletes',
      'false, or "edit": true beside it: rows are removed in the peer only where the file is edited',
    );
  if (table.edit) {
    if (table.format === 'xml') tell('format', '"csv", "json" or "ndjson": what is edited is not XML');
    if (table.neutralise && table.format === 'csv')
      tell('neutralise', 'false beside "edit": the marks would be written to the peer');
    if (table.search !== undefined)
      tell('search', 'nothing beside "edit": rows that are not found would look removed');
    if (table.count !== undefined)
      tell('count', 'nothing beside "edit": rows that were not asked for would look removed');
  }
  return problems;
}

function citationsProblems(
  { folder, path }: CitationsMirrorConfig,
  key: string,
  { folders }: Config,
): Problem[] {
  const problems: Problem[] = [];
  const known = folders.map(({ name }) => name);
  if (!known.includes(folder)) {
    const meant = nearest(folder, known);
    const expected =
      meant === undefined
        ? `the name of a watched folder: ${known.map((name) => JSON.stringify(name)).join(', ')}`
        : `${JSON.stringify(meant)}: did you mean that?`;
    problems.push({ path: `${key}.folder`, received: JSON.stringify(folder), expected });
  }
  if (!path.includes('{path}'))
    problems.push({
      path: `${key}.path`,
      received: JSON.stringify(path),
      expected: 'a path with "{path}" in it: each document needs a file of its own',
    });
  const unknown = unknownVariable(path, ['folder', 'path']);
  if (unknown !== undefined)
    problems.push({
      path: `${key}.path`,
      received: JSON.stringify(path),
      expected: `"{folder}" and "{path}", and not "${unknown}"`,
    });
  return problems;
}

function unknownVariable(template: string, known: readonly string[]): string | undefined {
  for (const [whole, name = ''] of template.matchAll(/\{(\w*)\}/g)) if (!known.includes(name)) return whole;
  return undefined;
}

function sharedFiles(mirrors: readonly Mirror[]): Problem[] {
  return mirrors.flatMap((mirror, i): Problem[] => {
    const other = mirrors.slice(0, i).find((before) => clash(before, mirror));
    if (other === undefined) return [];
    const what = isBelow(mirror, other) || isBelow(other, mirror) ? 'a file cannot be a directory' : BOTH;
    const expected = `a path apart from that of ${other.key}, ${JSON.stringify(other.path)}: ${what}`;
    return [{ path: `${mirror.key}.path`, received: JSON.stringify(mirror.path), expected }];
  });
}

const BOTH = 'both would write the same file';

function clash(a: Mirror, b: Mirror): boolean {
  if (a.target === b.target) return true;
  if (a.isOneFile && b.isOneFile) return isBelow(a, b) || isBelow(b, a);
  if (a.isOneFile) return tablePattern(b.target).test(a.target);
  return b.isOneFile && tablePattern(a.target).test(b.target);
}

function isBelow(inner: Mirror, outer: Mirror): boolean {
  return inner.isOneFile && outer.isOneFile && inner.target.startsWith(`${outer.target}/`);
}

/** One spelling of a path, for file systems that do not tell letters apart by case or composition. */
function comparable(path: string): string {
  return path.normalize('NFC').toLowerCase();
}
