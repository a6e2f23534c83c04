import { isUtf8 } from 'node:buffer';
import { hash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const MODULES = resolve(import.meta.dirname, '../../node_modules');
const TEXT = /(^|\/)[^/.]+$|\.(md|markdown|txt|json|ya?ml|[mc]?[jt]s)$/;
/** Largest text. The time of the peer grows with the size. */
const LARGEST_BYTES = 16 * 1024;
/** The system's limit for a path, its closing zero byte included. */
const PATH_MAX = 4_096;

/** A file as it is to stand on disk: its path below the root, and what it contains. */
export interface TreeFile {
  readonly path: string;
  readonly content: Buffer;
}

/**
 * Names that have caused failures somewhere: in shells, URLs, forms, globs, databases or people.
 * The long ones are as long as the file system allows.
 */
const ODD_NAMES: readonly string[] = [
  'with some spaces.md',
  ' a leading space.md',
  'a trailing space.md ',
  ' ',
  'Grüße aus Köln.md'.normalize('NFC'),
  'Ärger mit Übermut.md'.normalize('NFD'),
  'ﬁ ligature Å Å.md',
  '日本語の文書.txt',
  'עברית.md',
  'party 🎉 family 👩‍👩‍👧‍👦.md',
  'right \u202eto left.md',
  'zero\u200bwidth.md',
  'hash#tag.md',
  'per%cent.md',
  '100%25.md',
  '%2F%2e%2e%2F.md',
  'what?.md',
  'what?a=1&b=2#c.md',
  'this&that.md',
  'one+one=two.md',
  'a;b,c:d@e.md',
  'new\nline.md',
  'carriage\rreturn.md',
  'tab\there.md',
  'control\u0001\u007f.md',
  'back\\slash.md',
  "quote\"s and 'apostrophes'.md",
  '<angles> & ampersands;.md',
  '[brackets] {braces} (parentheses).md',
  '!exclamation.md',
  '*',
  '**.md',
  '-rf',
  '--config',
  '.hidden',
  '...',
  '$HOME `id` $(id).md',
  'CON',
  '__proto__',
  'constructor',
  `${'long'.repeat(62)}.txt`,
  `${'ü'.repeat(125)}.txt`,
  '🎉'.repeat(63),
];

export function sha256(content: Uint8Array): string {
  return hash('sha256', content, 'hex');
}

/**
 * Words of a text that every index would take for words; letters at their side that are not plain
 * would change them.
 */
export function plainWords(content: Buffer): Set<string> {
  const words = content.toString().match(/(?<![^\0-\x7f]|\w)[a-z]{3,30}(?![^\0-\x7f]|\w)/gi) ?? [];
  return new Set(words.map((word) => word.toLowerCase()));
}

/** Text files of node_modules, and made up ones where there are not `count`. */
export function realTexts(count: number): TreeFile[] {
  const files: TreeFile[] = [];
  // Hidden directories belong to tools, and change while tests run.
  // Packages in packages are ignored.
  const paths = readdirSync(MODULES, { recursive: true, encoding: 'utf8' }).filter(
    (path) => TEXT.test(path) && !/(^|\/)(\.|node_modules\/)/.test(path),
  );
  for (const path of paths.sort()) {
    if (files.length === count) return files;
    const stat = statSync(join(MODULES, path));
    if (stat.size > LARGEST_BYTES || !stat.isFile()) continue;
    const content = readFileSync(join(MODULES, path));
    if (isText(content)) files.push({ path: `modules/${path}`, content });
  }
  for (let i = files.length; i < count; i += 1)
    files.push({
      path: `made-up/${i}.md`,
      content: Buffer.from(`# Made up\n\nThe text number${i}.\n`),
    });
  return files;
}

function isText(content: Buffer): boolean {
  return isUtf8(content) && !content.includes(0) && plainWords(content).size > 0;
}

/** A file with each of the odd names, and one in a directory with that name. */
export function oddTexts(): TreeFile[] {
  return ODD_NAMES.flatMap((name, i) => [
    {
      path: `odd/${name}`,
      content: Buffer.from(`The ${word('odd', i)} stands in a file with an odd name.\n`),
    },
    {
      path: `odder/${name}/in.md`,
      content: Buffer.from(`The ${word('odder', i)} stands further down.\n`),
    },
  ]);
}

/** A word of letters alone that differs for each number. */
function word(beginning: string, n: number): string {
  return `${beginning}word${[...String(n)].map((digit) => 'abcdefghij'[Number(digit)]).join('')}`;
}

/**
 * A file on every tenth of `levels` directories, each in the one before. The deepest path is as
 * long as the system allows, given where the tree is to stand.
 */
export function deepTexts(root: string, levels: number): TreeFile[] {
  const room = PATH_MAX - 1 - Buffer.byteLength(join(root, 'deep', 'file.md'));
  const name = 'ä'.repeat(Math.floor((room / levels - 1) / 2));
  const files: TreeFile[] = [];
  for (let level = 10; level <= levels; level += 10) {
    const content = Buffer.from(`The ${word('deep', level)} stands far down.\n`);
    files.push({ path: join('deep', ...new Array<string>(level).fill(name), 'file.md'), content });
  }
  return files;
}

export function writeTree(root: string, files: readonly TreeFile[]): void {
  const made = new Set<string>();
  for (const { path, content } of files) {
    const absolute = `${root}/${path}`;
    const directory = dirname(absolute);
    if (!made.has(directory)) mkdirSync(directory, { recursive: true });
    made.add(directory);
    writeFileSync(absolute, content);
  }
}
