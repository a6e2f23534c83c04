import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

const SRC = resolve(import.meta.dirname, '../../src');
/** The same form as in lib/hint.ts; here a name is `${the expression}` of the source. */
export const COMMAND = /`((?:sudo -u [\w-]+ )?peersync (?:'[^'\n]*'|\\'|[^`'\n])+)`/g;

/** A command as it stands in a text of the source, and the files where it does. */
export interface Hint {
  readonly line: string;
  readonly files: readonly string[];
}

/** Every command that a text of the source names between backticks. Comments are no texts. */
export function hintsInSource(): Hint[] {
  const found = new Map<string, Set<string>>();
  for (const entry of readdirSync(SRC, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !/\.tsx?$/.test(path)) continue;
    for (const text of textsOf(path))
      for (const [, line = ''] of text.matchAll(COMMAND)) {
        const files = found.get(line) ?? new Set();
        found.set(line, files.add(relative(SRC, path)));
      }
  }
  return [...found].map(([line, files]) => ({ line, files: [...files] }));
}

function textsOf(path: string): string[] {
  const source = readFileSync(path, 'utf8');
  const texts: string[] = [];
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) walk(each);
    if (typeof node !== 'object' || node === null || Array.isArray(node)) return;
    const {
      expressions = [],
      quasis,
      type,
      value,
    } = node as {
      readonly type?: string;
      readonly value?: unknown;
      readonly quasis?: readonly { readonly value: { readonly cooked: string } }[];
      readonly expressions?: readonly { readonly start: number; readonly end: number }[];
    };
    if ((type === 'Literal' || type === 'JSXText') && typeof value === 'string') texts.push(value);
    if (type === 'TemplateLiteral' && quasis !== undefined) {
      const parts = quasis.map(({ value: { cooked } }, i) => {
        const expression = expressions[i];
        if (expression === undefined) return cooked;
        const code = source.slice(expression.start, expression.end);
        // A text within it is looked at by itself.
        return `${cooked}\${${code.includes('`') ? '' : code}}`;
      });
      texts.push(parts.join(''));
    }
    for (const child of Object.values(node)) walk(child);
  };
  walk(parseAst(source, { lang: path.endsWith('x') ? 'tsx' : 'ts' }));
  return texts;
}
