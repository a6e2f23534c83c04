import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const src = resolve(import.meta.dirname, '../../src');
const map = readFileSync(join(src, 'README.md'), 'utf8');
const steps = [...map.matchAll(/^\d+\. .*$/gm)]
  .map(([line]) => line)
  .filter((line) => line.includes('#'));
const names = steps.flatMap((step) => [...step.matchAll(/`([^`#]+)#([^`]+)`/g)]);

test.each(names.map(([, file = '', name = '']) => ({ file, name })))(
  '$file has $name, as the map says',
  ({ file, name }) => {
    expect(definitions(readFileSync(join(src, file), 'utf8'))).toContain(name);
  },
);

test('the files and folders that the map names exist', () => {
  const paths = [...map.matchAll(/`([\w-]+(?:\/[\w-]+)*(?:\.ts|\/))`/g)].map(
    ([, path = '']) => path,
  );
  const roots = [src, resolve(src, '..')];
  expect(paths.filter((path) => !roots.some((root) => existsSync(join(root, path))))).toEqual([]);
});

/**
 * The functions of a file, and the methods of its classes and objects as `Class.method`, private
 * ones without their #.
 */
function definitions(text: string): string[] {
  const found: string[] = [];
  let owner = '';
  for (const line of text.split('\n')) {
    const top = /^(?:export )?(?:abstract )?(?:async )?(class|const|function\*?) (\w+)/.exec(line);
    if (top !== null) owner = top[2] ?? '';
    if (top?.[1]?.startsWith('function')) found.push(owner);
    const method = /^ {2}(?:\w+ )*\*?#?(\w+)[(<:,]/.exec(line);
    if (method !== null) found.push(`${owner}.${method[1]}`);
  }
  return found;
}
