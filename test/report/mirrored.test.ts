import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { whyText } from '../../src/commands/why.js';
import { mirrorSchema } from '../../src/config/mirror-schema.js';
import { records } from '../../src/mirror/plan.js';
import type { MirrorRecord } from '../../src/mirror/record.js';
import { explain } from '../../src/report/why.js';
import { temporaryDirectory } from '../support/temp.js';
import { setUp } from './world.js';

const CONDITION = { code: 'TABLE_GONE', message: 'The table is gone', hint: 'Accept it', since: 1 };

/** Explains files below the mirror root, of a state that remembers this of the table "prices". */
async function mirrorsWith(record: Partial<MirrorRecord> = {}) {
  const { config, state, now } = await setUp();
  const root = join(temporaryDirectory(), 'mirror');
  const mirror = mirrorSchema.parse({
    shares: [{ c: 'lists', data: 'blacklist.txt' }],
    tables: [{ table: 'prices', edit: true }],
    citations: [{ folder: 'inbox' }],
  });
  const path = 'tables/prices.csv';
  records.keep(state, 'prices', { kind: 'table', path, succeededAt: now - 60_000, ...record });
  const changed = { ...config, mirror: { ...mirror, root } };
  const why = (file: string) => explain(join(root, file), changed, state, undefined);
  return { now, root, state, changed, why };
}

it('a file of a two-way table names its mirror, its table and when it was up to date', async () => {
  const { now, why } = await mirrorsWith();
  const report = await why('tables/prices.csv');
  expect(report).toMatchObject({ kind: 'mirrored', upToDateAt: now - 60_000, failure: undefined });
  const text = whyText(report, now).join('\n');
  expect(text).toMatch(/^status +below the mirror root: it comes from the peer$/m);
  expect(text).toContain('The mirror "prices" writes it: the table "prices" of the peer.');
  expect(text).toContain('It is two-way: what you change in the file is written to the peer.');
  expect(text).toMatch(/^up to date .*\(1m ago\)$/m);
  expect(text).toMatch(/^next .*by `peersync mirror prices`\.$/m);
  expect(text).not.toContain('not watched');
});

it('a shared object, and citations, are told to go one way', async () => {
  const { why } = await mirrorsWith();
  const share = await why('shares/lists/blacklist.txt');
  expect(share.rule).toContain(
    'the shared object "lists/blacklist.txt" of the peer. It goes one way',
  );
  const citations = await why('citations/inbox/a/b.md.json');
  expect(citations.rule).toContain('citations of the documents of folder "inbox". It goes one way');
});

it('a condition is the reason, and what to do', async () => {
  const { why } = await mirrorsWith({ condition: CONDITION });
  expect(await why('tables/prices.csv')).toMatchObject({
    failure: { code: 'TABLE_GONE', message: 'The table is gone.', hint: 'Accept it.' },
    next: 'The file stays as it is until you accept that, or its cause is gone; the peer is asked again.',
  });
});

it('a conflict is told of the file and of the copy beside it', async () => {
  const file = 'tables/prices.csv.conflict-20261126-214700';
  const conflicts = [{ pk: 'apple', column: 'price', file, at: 1 }];
  const { why } = await mirrorsWith({ conflicts });
  const { failure } = await why('tables/prices.csv');
  expect(failure?.message).toContain(`The file as it was edited is ${file}.`);
  const copy = await why(file);
  expect(copy.rule).toContain('It is a conflict file: a copy of tables/prices.csv');
  expect(copy.rule).toContain('Both sides changed "price" of row "apple".');
  expect(copy.next).toContain('remove this copy');
});

it('an earlier version, and a file that no mirror writes, are told as such', async () => {
  const { why } = await mirrorsWith();
  expect((await why('tables/prices.csv.1')).rule).toContain('an earlier version of tables/prices');
  expect((await why('tables/else.csv')).rule).toMatch(/no mirror writes it/);
});

it('the file is found by another way to the mirror root', async () => {
  const { changed, root, state } = await mirrorsWith();
  mkdirSync(root);
  const link = join(temporaryDirectory(), 'link');
  symlinkSync(root, link);
  const report = await explain(join(link, 'tables/prices.csv'), changed, state, undefined);
  expect(report).toMatchObject({ kind: 'mirrored' });
});
