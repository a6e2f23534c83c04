import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

interface Mutant {
  readonly id: string;
  readonly file: string;
  readonly find: string;
}

const mutants = JSON.parse(
  readFileSync(join(import.meta.dirname, 'mutants.json'), 'utf8'),
) as readonly Mutant[];

it.each(mutants)('the text that $id breaks occurs once in $file', ({ file, find }) => {
  expect(readFileSync(join(ROOT, file), 'utf8').split(find)).toHaveLength(2);
});
