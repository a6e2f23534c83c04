import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, it } from 'vitest';
import type { MirrorReport } from '../../src/mirror/record.js';
import type { StatusReport } from '../../src/report/status.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import type { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { remotePeer } from './at-peer.js';

let directory: string;
let config: string;
/** That of all tests here; each has tables and shared objects of its own. */
let peer: PeerProcess;

beforeEach(async () => {
  peer = await remotePeer();
  directory = temporaryDirectory();
});

function configure(mirror: object): void {
  config = writeConfig(directory, {
    peer: peer.section(),
    mirror: { root: join(directory, 'mirror'), ...mirror },
  });
}

async function command(...args: string[]) {
  const { code, stdout, stderr } = await peersync([...args, '--config', config]);
  return { code, stdout, stderr };
}

async function json<T>(...args: string[]): Promise<{ code: number | null; lines: T[] }> {
  const { code, stdout } = await command(...args, '--json');
  return { code, lines: stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as T])) };
}

const mirrored = (path: string): string => readFileSync(join(directory, 'mirror', path), 'utf8');
const mtime = (path: string): number => statSync(join(directory, 'mirror', path)).mtimeMs;

function share(name: string, content: string): void {
  const path = join(peer.data, 'shares', name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

const SENTENCE = 'This sentence is long enough for the peer to look for it in other documents.';

it('once brings tables, shared objects and citations up to date, and writes nothing a second time', async () => {
  configure({
    tables: [
      { table: 'prices' },
      { name: 'lists', table: 'list-*', path: '{table}.ndjson', format: 'ndjson' },
    ],
    shares: [{ c: 'reports', data: 'q3.txt' }],
    citations: [{ folder: 'inbox' }],
  });
  await command('table', 'set', 'prices', '--pk', 'apple', 'price=3');
  await command('table', 'set', 'list-a', '--pk', '1', 'name=a');
  share('reports/q3.txt', 'third quarter');
  for (const name of ['one.txt', 'two.txt'])
    writeFileSync(join(directory, 'inbox', name), `${SENTENCE}\n\n${name}`);
  const first = await json('once');
  expect(first).toMatchObject({
    code: 0,
    lines: [{ items: { confirmed: 2 }, mirrors: { current: 5, changed: 4, alarms: 0, failed: 0 } }],
  });
  expect(mirrored('tables/prices.csv')).toBe('pk,price\napple,3\n');
  await command('table', 'set', 'prices', '--pk', 'acorn', 'weight=1', 'colour=green', 'price=2');
  expect(await json('mirror', 'prices')).toMatchObject({ code: 0, lines: [{ changed: true }] });
  expect(mirrored('tables/prices.csv')).toBe('pk,price,weight,colour\nacorn,2,1,green\napple,3,,\n');
  expect((await command('table', 'get', 'prices')).stdout).toBe(mirrored('tables/prices.csv'));
  expect(mirrored('list-a.ndjson')).toBe('{"pk":"1","name":"a"}\n');
  expect(mirrored('shares/reports/q3.txt')).toBe('third quarter');
  expect(JSON.parse(mirrored('citations/inbox/one.txt.json'))).toMatchObject({
    url: 'https://files.example.org/inbox/one.txt',
    citing: [{ url: 'https://files.example.org/inbox/two.txt', sentences: 1 }],
  });
  const times = ['tables/prices.csv', 'shares/reports/q3.txt', 'citations/inbox/one.txt.json'].map(mtime);
  expect(await json('once')).toMatchObject({ code: 0, lines: [{ mirrors: { changed: 0, failed: 0 } }] });
  expect(['tables/prices.csv', 'shares/reports/q3.txt', 'citations/inbox/one.txt.json'].map(mtime)).toEqual(
    times,
  );
}, 120_000);

it('check says whether the peer has what is mirrored, and whether the files can be written', async () => {
  configure({
    tables: [{ table: 'wages' }, { table: 'rota-*' }],
    shares: [{ data: 'a.txt', c: 'lists' }, { data: 'big.txt' }],
  });
  await command('table', 'set', 'rota-a', '--pk', '1', 'name=a');
  share('big.txt', 'b'.repeat(3_000_000));
  const { code, stdout } = await command('check');
  expect(code).toBe(1);
  expect(stdout).toMatch(/^ok +state: .*state (will be made when it is needed|can be written)$/m);
  expect(stdout).toMatch(/^ok +mirror root: .*mirror will be made when it is needed$/m);
  expect(stdout).toMatch(/^TROUBLE +mirror wages: the peer has no table "wages"\n +Mend its name/m);
  expect(stdout).toMatch(/^ok +mirror rota-\*: matches 1 table of the peer$/m);
  expect(stdout).toMatch(/^TROUBLE +mirror lists\/a.txt: the peer has no shared object "a.txt"$/m);
  expect(stdout).toMatch(/^ok +mirror big.txt: the peer has the shared object$/m);

  await command('table', 'set', 'wages', '--pk', 'apple', 'price=3');
  share('lists/a.txt', 'a');
  expect(await command('check')).toMatchObject({ code: 0 });

  writeFileSync(join(directory, 'mirror'), 'in the way');
  expect((await command('check')).stdout).toMatch(/^TROUBLE +mirror root: .*mirror cannot be written/m);
}, 120_000);

it('an alarm keeps the file, ends once with 3, is shown by status, and waits for accept', async () => {
  configure({ tables: [{ table: 'rents' }], shares: [{ data: 'a.txt' }] });
  share('a.txt', 'a');
  await command('table', 'set', 'rents', '--pk', 'apple', 'price=3');
  await command('table', 'set', 'rents', '--pk', 'pear', 'price=4');
  expect(await json('once')).toMatchObject({ code: 0 });
  await command('table', 'delete-rows', 'rents', 'apple', 'pear', '--yes');
  rmSync(join(peer.data, 'shares', 'a.txt'));

  const alarmed = await command('once');
  expect(alarmed).toMatchObject({ code: 3 });
  expect(alarmed.stdout).toContain('2 alarms');
  expect(alarmed.stdout).toMatch(/rents: ALARM: The peer shows no rows of .*peersync mirror accept rents/);
  expect(alarmed.stderr).toBe('');
  expect(mirrored('tables/rents.csv')).toContain('apple,3');
  expect(mirrored('shares/a.txt')).toBe('a');

  const { lines } = await json<StatusReport>('status');
  const codes = lines[0]?.mirrors.map(({ name, alarm }) => [name, alarm?.code]);
  expect(codes).toEqual([
    ['a.txt', 'SHARE_GONE'],
    ['rents', 'TABLE_EMPTY'],
  ]);
  const { stdout } = await command('status');
  expect(stdout).toMatch(
    /^rents +\S.* ago +\S.* ago +2 +\d+ B +tables\/rents.csv\n {2}ALARM for .*: The peer shows no rows/m,
  );

  expect(await json<MirrorReport>('mirror', 'accept', 'rents')).toMatchObject({
    code: 0,
    lines: [{ name: 'rents', changed: true, rows: 0 }],
  });
  expect(mirrored('tables/rents.csv')).toBe('pk,price\n');
  expect((await command('mirror', 'accept', 'a.txt')).stdout).toBe(
    'a.txt: shares/a.txt removed, until the peer has it again\n',
  );
  expect((await command('mirror', 'a.txt')).stdout).toContain('shares/a.txt is not there, until');
  expect((await command('status')).stdout).toMatch(/ {2}The peer does not have it, as was accepted .* ago;/);
  const wrong = await command('mirror', 'accept', 'rent');
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('did you mean "rents"');
}, 120_000);

it('a running daemon follows the peer on its own, and runs mirrors when it is asked to', async () => {
  configure({
    tables: [
      { table: 'tides', every: '1s' },
      { table: 'tides', name: 'slow', path: 'slow.json', format: 'json', every: '1h' },
    ],
  });
  await command('table', 'set', 'tides', '--pk', 'apple', 'price=3');
  const daemon = new Running(['run', '--config', config]);
  await until(() => fileHolds('tables/tides.csv', 'apple,3'), 'the table is mirrored');
  await until(() => fileHolds('slow.json', '"3"'), 'so is the slow one, at the start');
  await command('table', 'set', 'tides', '--pk', 'apple', 'price=4');
  await until(() => fileHolds('tables/tides.csv', 'apple,4'), 'the change is mirrored');
  expect(mirrored('slow.json')).toContain('"3"');
  expect(await json<MirrorReport>('mirror', 'slow')).toMatchObject({
    code: 0,
    lines: [{ name: 'slow', changed: true, rows: 1 }],
  });
  expect(mirrored('slow.json')).toContain('"4"');
  // A mirror that runs at this moment has no next turn yet.
  await until(async () => {
    const { lines } = await json<StatusReport>('status');
    return lines[0]?.mirrors.every(({ nextAt }) => nextAt !== undefined) === true;
  }, 'each mirror has its next turn');
  expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0 });
}, 120_000);

it('what a person changes in a two-way table reaches the peer, also while the daemon runs', async () => {
  configure({ tables: [{ table: 'fees', every: '1h', edit: true }] });
  await command('table', 'set', 'fees', '--pk', 'apple', 'price=3');
  const daemon = new Running(['run', '--config', config]);
  await until(() => fileHolds('tables/fees.csv', 'apple,3'), 'the table is mirrored');
  writeFileSync(join(directory, 'mirror/tables/fees.csv'), 'pk,price\napple,5\n,7\n');
  await until(async () => {
    const { lines } = await json<{ pk: string; price: string }>('table', 'get', 'fees');
    return (
      lines.some(({ price }) => price === '7') &&
      lines.some(({ pk, price }) => pk === 'apple' && price === '5')
    );
  }, 'both rows are in the peer');
  await until(() => /\n[0-9a-z]{12},7\n/.test(mirrored('tables/fees.csv')), 'the new row has its key');
  await daemon.kill('SIGTERM');
}, 120_000);

function fileHolds(path: string, text: string): boolean {
  try {
    return mirrored(path).includes(text);
  } catch {
    return false;
  }
}
