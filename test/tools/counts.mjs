// Counts src: lines of code and files a folder beside their budgets, circles of imports, and small files with a single importer.
// Ends with 1 where there is a circle that is not known; everything else is told only.
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

/** Circles that are there, and how they go; a smaller one of the same files is known too. */
const KNOWN_CIRCLES = [];

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.(ts|tsx|css)$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
  .map((entry) => relative(src, join(entry.parentPath, entry.name)))
  .toSorted();
const texts = new Map(files.map((file) => [file, readFileSync(join(src, file), 'utf8')]));
const code = new Map([...texts].map(([file, text]) => [file, codeLines(text)]));
const imports = new Map([...texts].map(([file, text]) => [file, importsOf(file, text)]));

printFolders();
const unknown = printCircles();
printSmall();
if (unknown > 0) process.exitCode = 1;

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

/** @returns how many are not known */
function printCircles() {
  const circles = circlesOf(imports).map((group) => ({
    way: wayRound(group),
    known: KNOWN_CIRCLES.find(({ files: of }) => group.every((file) => of.includes(file))),
  }));
  const unknown = circles.filter(({ known }) => known === undefined);
  console.log(`\nCircles of imports: ${circles.length}, ${unknown.length} of them new.`);
  for (const { way, known } of circles)
    console.log(
      `  ${known === undefined ? 'NEW' : 'known'}: ${way.join(' → ')}${known ? ` (${known.plan})` : ''}`,
    );
  for (const known of KNOWN_CIRCLES)
    if (!circles.some((circle) => circle.known === known))
      console.log(`  gone, to be taken from the list of test/tools/counts.mjs: ${known.files.join(', ')}`);
  return unknown.length;
}

/** The groups of files that reach each other (Tarjan's algorithm). */
function circlesOf(graph) {
  const order = new Map();
  const low = new Map();
  const stack = [];
  const circles = [];
  const visit = (file) => {
    order.set(file, order.size);
    low.set(file, order.get(file));
    stack.push(file);
    for (const to of graph.get(file)) {
      if (!order.has(to)) {
        visit(to);
        low.set(file, Math.min(low.get(file), low.get(to)));
      } else if (stack.includes(to)) low.set(file, Math.min(low.get(file), order.get(to)));
    }
    if (low.get(file) !== order.get(file)) return;
    const group = stack.splice(stack.indexOf(file));
    if (group.length > 1) circles.push(group);
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
}

/** The shortest way from the first file of a circle back to it. */
function wayRound([first]) {
  const ways = [[first]];
  const seen = new Set();
  for (const way of ways) {
    for (const to of imports.get(way.at(-1))) {
      if (to === first) return [...way, first];
      if (!seen.has(to)) ways.push([...way, to]);
      seen.add(to);
    }
  }
  return [first];
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
