// Counts src: lines of code and files a folder beside their budgets, and small files with a single importer.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const src = resolve(import.meta.dirname, '../../src');

/** The most lines of code of each folder (`.` is the top of src), and of everything. */
const BUDGETS = {
  commands: 2_300,
  cli: 900,
  daemon: 1_200,
  page: 3_300,
  report: 1_000,
  watch: 1_500,
  uplink: 1_150,
  mirror: 3_000,
  embedded: 2_500,
  web: 500,
  content: 500,
  queue: 550,
  peer: 2_400,
  state: 1_100,
  config: 1_150,
  lib: 450,
};
const ALL = { code: 24_000, files: 160 };

/** A file below this with a single importer lives with its importer. */
const SMALL = 40;
/** Small files that stay: file to reason. */
const SMALL_FOR_A_REASON = {
  'page/browser/theme.ts': 'both pages load it by itself, before anything is drawn',
};

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.(ts|tsx|css)$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
  .map((entry) => relative(src, join(entry.parentPath, entry.name)))
  .toSorted();
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
const code = new Map([...texts].map(([file, text]) => [file, codeLines(text)]));
const imports = new Map([...texts].map(([file, text]) => [file, importsOf(file, text)]));

printFolders();
printSmall();

/** Lines that are neither blank nor of a comment. */
function codeLines(text) {
  return text.split('\n').filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line)).length;
}

/** The files of src that a file imports, `import type` and `import()` included. */
function importsOf(file, text) {
  const found = new Set();
  for (const [, target] of text.matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)) {
    const to = join(dirname(file), target).replace(/\.js$/, '');
    const name = [`${to}.ts`, `${to}.tsx`].find((candidate) => texts.has(candidate));
    if (name !== undefined) found.add(name);
  }
  return found;
}

function folderOf(file) {
  return file.includes('/') ? file.split('/')[0] : '.';
}

function printFolders() {
  const names = new Set([...Object.keys(BUDGETS), ...files.map(folderOf)]);
  const rows = [...names].map((name) => {
    const own = files.filter((file) => folderOf(file) === name);
    return [name, sum(own), own.length, BUDGETS[name]];
  });
  rows.push(['all', sum(files), files.length, ALL.code]);
  console.log(
    `${'src'.padEnd(12)}${['code', 'at most', 'files', 'a file'].map((s) => s.padStart(9)).join('')}`,
  );
  for (const [name, lines, count, budget] of rows) {
    const most = name === '.' ? '' : (budget ?? 'no room');
    const figures = [lines, most, count, count === 0 ? '' : Math.round(lines / count)];
    const over = budget !== undefined && lines > budget ? `  ${lines - budget} over` : '';
    console.log(`${name.padEnd(12)}${figures.map((s) => String(s).padStart(9)).join('')}${over}`);
  }
  console.log(`Files: ${files.length} of about ${ALL.files}.`);
}

function sum(names) {
  return names.reduce((total, name) => total + code.get(name), 0);
}

function printSmall() {
  const importers = new Map(files.map((file) => [file, []]));
  for (const [file, targets] of imports) for (const to of targets) importers.get(to).push(file);
  const small = files.filter(
    (file) =>
      code.get(file) < SMALL && importers.get(file).length === 1 && SMALL_FOR_A_REASON[file] === undefined,
  );
  console.log(`\nFiles under ${SMALL} lines of code with a single importer: ${small.length}.`);
  for (const file of small) console.log(`  ${file} (${code.get(file)}): ${importers.get(file)[0]}`);
}
