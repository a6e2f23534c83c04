// Counts src: lines of code and files of each folder.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

const src = resolve(import.meta.dirname, '../../src');

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
  const row = (name, figures) =>
    name.padEnd(20) + figures.map((figure) => String(figure).padStart(9)).join('');
  console.log(row('src', ['code', 'files', 'a file']));
  const names = [...new Set(files.map(folderOf))];
  const folders = names.map((name) => [name, files.filter((file) => folderOf(file) === name)]);
  for (const [name, own] of [...folders, ['all', files]]) {
    const lines = sum(own);
    console.log(row(name, [lines, own.length, Math.round(lines / own.length)]));
  }
}

function sum(names) {
  return names.reduce((total, name) => total + code.get(name), 0);
}
