// Counts src: lines of code and files a folder beside their budgets.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

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

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter(
    (entry) =>
      entry.isFile() && /\.(ts|tsx|css)$/.test(entry.name) && !entry.name.endsWith('.d.ts'),
  )
  .map((entry) => relative(src, join(entry.parentPath, entry.name)))
  .toSorted();
const code = new Map(files.map((file) => [file, codeLines(readFileSync(join(src, file), 'utf8'))]));

printFolders();

/** Lines that are neither blank nor of a comment. */
function codeLines(text) {
  return text.split('\n').filter((line) => !/^\s*($|\/\/|\/?\*)/.test(line)).length;
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
