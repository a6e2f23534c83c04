import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import type { MirrorReport } from '../../src/mirror/record.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';

/** Each test has tables and shared objects of its own. */
let site: Site;
beforeEach(async () => {
  site = await Site.begin();
});

const mirrored = (path: string): string => readFileSync(site.path(`mirror/${path}`), 'utf8');
const mirroredAt = (paths: readonly string[]) =>
  paths.map((path) => statSync(site.path(`mirror/${path}`)).mtimeMs);

function fileHolds(path: string, text: string): boolean {
  try {
    return mirrored(path).includes(text);
  } catch {
    return false;
  }
}

function share(name: string, content: string): void {
  const path = join(site.peer.data, 'shares', name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

const SENTENCE = 'This sentence is long enough for the peer to look for it in other documents.';

it('once brings tables, shared objects and citations up to date, and writes nothing a second time', async () => {
  const tables = [
    { table: 'prices' },
    { name: 'lists', table: 'list-*', path: '{table}.ndjson', format: 'ndjson' },
  ];
  const shares = [{ c: 'reports', data: 'q3.txt' }];
  site.configure({ mirror: { tables, shares, citations: [{ folder: 'inbox' }] } });
  await site.run('table', 'set', 'prices', '--pk', 'apple', 'price=3');
  await site.run('table', 'set', 'list-a', '--pk', '1', 'name=a');
  share('reports/q3.txt', 'third quarter');
  for (const name of ['one.txt', 'two.txt']) site.drop(`inbox/${name}`, `${SENTENCE}\n\n${name}`);
  expect(await site.json('once')).toMatchObject({
    code: 0,
    lines: [
      { items: { confirmed: 2 }, mirrors: { current: 5, changed: 4, conditions: 0, failed: 0 } },
    ],
  });
  expect(mirrored('tables/prices.csv')).toBe('pk,price\napple,3\n');
  await site.run('table', 'set', 'prices', '--pk', 'acorn', 'weight=1', 'colour=green', 'price=2');
  expect(await site.json('mirror', 'prices')).toMatchObject({
    code: 0,
    lines: [{ changed: true }],
  });
  expect(mirrored('tables/prices.csv')).toBe(
    'pk,price,weight,colour\nacorn,2,1,green\napple,3,,\n',
  );
  expect((await site.run('table', 'get', 'prices')).stdout).toBe(mirrored('tables/prices.csv'));
  expect(mirrored('list-a.ndjson')).toBe('{"pk":"1","name":"a"}\n');
  expect(mirrored('shares/reports/q3.txt')).toBe('third quarter');
  expect(JSON.parse(mirrored('citations/inbox/one.txt.json'))).toMatchObject({
    url: site.url('inbox/one.txt'),
    citing: [{ url: site.url('inbox/two.txt'), sentences: 1 }],
  });
  const paths = ['tables/prices.csv', 'shares/reports/q3.txt', 'citations/inbox/one.txt.json'];
  const times = mirroredAt(paths);
  expect(await site.json('once')).toMatchObject({
    code: 0,
    lines: [{ mirrors: { changed: 0, failed: 0 } }],
  });
  expect(mirroredAt(paths)).toEqual(times);
});

it('check reports whether the peer has the mirrored objects, and whether the files can be written', async () => {
  const tables = [{ table: 'wages' }, { table: 'rota-*' }];
  site.configure({
    mirror: { tables, shares: [{ data: 'a.txt', c: 'lists' }, { data: 'big.txt' }] },
  });
  await site.run('table', 'set', 'rota-a', '--pk', '1', 'name=a');
  share('big.txt', 'b'.repeat(3_000_000));
  const { code, stdout } = await site.run('check');
  expect(code).toBe(1);
  for (const line of [
    /^ok +state: .*state (will be made when it is needed|can be written)$/m,
    /^ok +mirror root: .*mirror will be made when it is needed$/m,
    /^FAILED +mirror wages: the peer has no table "wages"\n +Mend its name .* `peersync table set wages --pk KEY COLUMN=VALUE.*` sets its first row\.$/m,
    /^ok +mirror rota-\*: matches 1 table of the peer$/m,
    /^FAILED +mirror lists\/a.txt: the peer has no shared object "a.txt"$/m,
    /^ok +mirror big.txt: the peer has the shared object$/m,
  ])
    expect(stdout).toMatch(line);
  await site.run('table', 'set', 'wages', '--pk', 'apple', 'price=3');
  share('lists/a.txt', 'a');
  expect(await site.run('check')).toMatchObject({ code: 0 });
  writeFileSync(site.path('mirror'), 'in the way');
  expect((await site.run('check')).stdout).toMatch(
    /^FAILED +mirror root: .*mirror cannot be written/m,
  );
});

it('a condition keeps the file, ends once with 3, is shown by status, and waits for accept', async () => {
  site.configure({ mirror: { tables: [{ table: 'rents' }], shares: [{ data: 'a.txt' }] } });
  share('a.txt', 'a');
  await site.run('table', 'set', 'rents', '--pk', 'apple', 'price=3');
  await site.run('table', 'set', 'rents', '--pk', 'pear', 'price=4');
  expect(await site.run('once')).toMatchObject({ code: 0 });
  await site.run('table', 'delete-rows', 'rents', 'apple', 'pear', '--yes');
  rmSync(join(site.peer.data, 'shares', 'a.txt'));

  const reported = await site.run('once');
  expect(reported).toMatchObject({ code: 3, stderr: '' });
  expect(reported.stdout).toContain('2 need you');
  expect(reported.stdout).toMatch(
    /rents: NEEDS YOU: The peer shows no rows of .*peersync mirror accept rents/,
  );
  expect(mirrored('tables/rents.csv')).toContain('apple,3');
  expect(mirrored('shares/a.txt')).toBe('a');
  const { lines } = await site.json<StatusReport>('status');
  expect(lines[0]?.mirrors.map(({ name, condition }) => [name, condition?.code])).toEqual([
    ['a.txt', 'SHARE_GONE'],
    ['rents', 'TABLE_EMPTY'],
  ]);
  const { stdout } = await site.run('status');
  expect(stdout).toMatch(
    /^rents +\S.* ago +\S.* ago +2 +\d+ B +tables\/rents.csv\n {2}NEEDS YOU for .*: The peer shows no rows/m,
  );

  expect(await site.json<MirrorReport>('mirror', 'accept', 'rents')).toMatchObject({
    code: 0,
    lines: [{ name: 'rents', changed: true, rows: 0 }],
  });
  expect(mirrored('tables/rents.csv')).toBe('pk,price\n');
  expect((await site.run('mirror', 'accept', 'a.txt')).stdout).toBe(
    'a.txt: shares/a.txt removed, until the peer has it again\n',
  );
  expect((await site.run('mirror', 'a.txt')).stdout).toContain('shares/a.txt is not there, until');
  expect((await site.run('status')).stdout).toMatch(
    / {2}The peer does not have it, as was accepted .* ago;/,
  );
  const wrong = await site.run('mirror', 'accept', 'rent');
  expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean "rents"') });
});

it('a running daemon updates mirrors by itself and on request', async () => {
  const slow = { table: 'tides', name: 'slow', path: 'slow.json', format: 'json', every: '1h' };
  site.configure({ mirror: { tables: [{ table: 'tides', every: '1s' }, slow] } });
  await site.run('table', 'set', 'tides', '--pk', 'apple', 'price=3');
  await site.start();
  await until(() => fileHolds('tables/tides.csv', 'apple,3'), 'the table is mirrored');
  await until(() => fileHolds('slow.json', '"3"'), 'so is the slow one, at the start');
  await site.run('table', 'set', 'tides', '--pk', 'apple', 'price=4');
  await until(() => fileHolds('tables/tides.csv', 'apple,4'), 'the change is mirrored');
  expect(mirrored('slow.json')).toContain('"3"');
  expect(await site.json<MirrorReport>('mirror', 'slow')).toMatchObject({
    code: 0,
    lines: [{ name: 'slow', changed: true, rows: 1 }],
  });
  expect(mirrored('slow.json')).toContain('"4"');
  // A mirror that runs at this moment has no next turn yet.
  const haveTurns = async () =>
    (await site.status()).mirrors.every(({ nextAt }) => nextAt !== undefined);
  await until(haveTurns, 'each mirror has its next turn');
  await site.stop();
});

it('edits of a two-way table reach the peer, even while the daemon runs', async () => {
  site.configure({ mirror: { tables: [{ table: 'fees', every: '1h', edit: true }] } });
  await site.run('table', 'set', 'fees', '--pk', 'apple', 'price=3');
  await site.start();
  await until(() => fileHolds('tables/fees.csv', 'apple,3'), 'the table is mirrored');
  writeFileSync(site.path('mirror/tables/fees.csv'), 'pk,price\napple,5\n,7\n');
  await until(async () => {
    const { stdout } = await site.run('table', 'get', 'fees');
    return /^apple,5$/m.test(stdout) && /^[0-9a-z]{12},7$/m.test(stdout);
  }, 'both rows are in the peer');
  await until(
    () => /\n[0-9a-z]{12},7\n/.test(mirrored('tables/fees.csv')),
    'the new row has its key',
  );
  const why = await site.run('why', site.path('mirror/tables/fees.csv'));
  expect(why.code).toBe(0);
  expect(why.stdout).toContain('The mirror "fees" writes it: the table "fees" of the peer.');
  await site.stop();
});
