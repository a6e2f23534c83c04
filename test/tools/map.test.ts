import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const src = resolve(import.meta.dirname, '../../src');
const map = readFileSync(join(src, 'README.md'), 'utf8');
const names = new Map(
  [...map.matchAll(/`([\w./-]+\.tsx?)#([\w.]+)`/g)].map(([text, file = '', name = '']) => [
    text,
    { file, name },
  ]),
);

test('the map names the steps of a file and the places of changes', () => {
  expect(names.size).toBeGreaterThan(100);
});

test.each([...names.values()])('$file has $name, as the map says', ({ file, name }) => {
  expect(definitions(readFileSync(join(src, file), 'utf8'))).toContain(name);
});

test('the files and folders that the map names exist', () => {
  const paths = [...map.matchAll(/`([\w-]+(?:\/[\w-]+)*(?:\.ts|\/))`/g)].map(
    ([, path = '']) => path,
  );
  const roots = [src, resolve(src, '..')];
  expect(paths.filter((path) => !roots.some((root) => existsSync(join(root, path))))).toEqual([]);
});

/**
 * Returns what a file defines at its top level, and the methods of its classes and objects as
 * `Class.method`, private ones without their #.
 */
function definitions(text: string): string[] {
  const found: string[] = [];
  let owner = '';
  const kinds = 'class|const|function\\*?|interface|type';
  const definition = new RegExp(`^(?:export )?(?:abstract )?(?:async )?(?:${kinds}) (\\w+)`);
  for (const line of text.split('\n')) {
    const [, name] = definition.exec(line) ?? [];
    if (name !== undefined) {
      owner = name;
      found.push(name);
    }
    const method = /^ {2}(?:\w+ )*\*?#?(\w+)[(<:,]/.exec(line);
    if (method !== null) found.push(`${owner}.${method[1]}`);
  }
  return found;
}
