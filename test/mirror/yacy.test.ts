import { randomBytes } from 'node:crypto';
import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';
import { Engine } from './engine.js';

const AN_HOUR_AGO = Date.now() - 3_600_000;
const DUMP = 'dump/yacy_dump_x_ts.xml.gz';
const FILE = `shares/${DUMP}`;

/** Mirrors of a YaCy. */
async function atYacy(clock?: FakeClock) {
  const peer = await YacyModel.start({ timing: timing(20) });
  const client = new PeerClient({ baseUrl: peer.url });
  afterwards('test', () => client.close());
  const asked = () =>
    peer.served
      .filter(({ target }) => target.startsWith('/share/'))
      .map(({ status, headers }) => `${status} ${headers.range ?? 'whole'}`);
  return { peer, client, asked, engine: new Engine(client, clock) };
}

describe('a file that a YaCy shares', () => {
  it('is asked for only if it changed, and costs nothing while it did not', async () => {
    const { peer, engine, asked } = await atYacy();
    peer.share.put(DUMP, 'gulls', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: DUMP }] });
    expect(await engine.once(DUMP)).toMatchObject({ changed: true, bytes: 5, type: 'application/gzip' });
    const first = engine.mirrors.status()[0];
    expect(await engine.once(DUMP)).toMatchObject({ changed: false, bytes: 5, sha256: first?.sha256 });
    peer.share.put(DUMP, 'terns', Date.now());
    expect(await engine.once(DUMP)).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual(['200 whole', '304 whole', '200 whole']);
  });

  it('that changed twice in one second is not missed', async () => {
    const { peer, engine } = await atYacy();
    peer.share.put(DUMP, 'gulls', Date.now());
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    peer.share.put(DUMP, 'terns', Date.now());
    await engine.once(DUMP);
    expect(engine.read(FILE)).toBe('terns');
  });

  it('comes whole where the file here is another, or is of another peer', async () => {
    const { peer, engine, asked } = await atYacy();
    peer.share.put(DUMP, 'gulls', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    engine.write(FILE, 'mine!');
    expect(await engine.once(DUMP)).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('gulls');
    peer.share.put('other', 'terns', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: 'other', name: DUMP, path: FILE }] });
    await engine.once(DUMP);
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual(['200 whole', '200 whole', '200 whole']);
  });

  it('comes whole once a week, since an older one in its place looks unchanged', async () => {
    const clock = new FakeClock(Date.now());
    const { peer, engine } = await atYacy(clock);
    peer.share.put(DUMP, 'gulls', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    peer.share.put(DUMP, 'terns', AN_HOUR_AGO - 1_000);
    await engine.once(DUMP);
    expect(engine.read(FILE)).toBe('gulls');
    await clock.advance(8 * 86_400_000);
    await engine.once(DUMP);
    expect(engine.read(FILE)).toBe('terns');
  });

  it('that breaks off leaves the old file and nothing else, and comes whole the next time', async () => {
    const { peer, engine } = await atYacy();
    peer.share.put(DUMP, 'old', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    const content = randomBytes(3 * 2 ** 20);
    peer.share.put(DUMP, content, Date.now());
    peer.share.breakOff(DUMP, 2 * 2 ** 20);
    expect((await engine.once(DUMP)).failure).toBeDefined();
    expect(engine.read(FILE)).toBe('old');
    expect(engine.files()).toEqual([FILE]);
    await engine.once(DUMP);
    expect(readFileSync(join(engine.root, FILE)).equals(content)).toBe(true);
  });
});

describe('a pattern over what a YaCy shares', () => {
  it('follows all that match, through directories, and those that come later', async () => {
    const { peer, engine } = await atYacy();
    peer.share.put('dump/a.gz', 'a', AN_HOUR_AGO);
    peer.share.put('dump/old/b.gz', 'b', AN_HOUR_AGO);
    peer.share.put('list.txt', 'c', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: 'dump/*' }] });
    const reports = await engine.run();
    expect(reports.find(({ name }) => name === 'dump/*')?.notes).toEqual([
      'Follows 2 shared objects of the peer.',
    ]);
    expect(engine.files()).toEqual(['shares/dump/a.gz', 'shares/dump/old/b.gz']);
    peer.share.put('dump/ä #%.gz', 'd', AN_HOUR_AGO);
    await engine.run('dump/*');
    expect(engine.read('shares/dump/ä #%.gz')).toBe('d');
    expect(peer.served.map(({ target }) => target)).toContain('/share/dump/%C3%A4%20%23%25.gz');
  });

  it('keeps what it found when it is gone, until a person accepts that, and does so after a restart', async () => {
    const { peer, engine } = await atYacy();
    peer.share.put('dump/a.gz', 'a', AN_HOUR_AGO);
    const settings = { shares: [{ data: '*.gz', c: 'dump', name: 'dumps', path: 'd/{data}' }] };
    await engine.open(settings);
    await engine.run();
    expect(engine.files()).toEqual(['d/a.gz']);
    peer.share.remove('dump/a.gz');
    await engine.open(settings);
    await engine.run();
    const gone = engine.mirrors.status().find(({ share }) => share === 'dump/a.gz');
    expect(gone).toMatchObject({ name: 'dumps/dump/a.gz', alarm: { code: 'SHARE_GONE' } });
    expect(engine.read('d/a.gz')).toBe('a');
    await engine.mirrors.accept('dumps/dump/a.gz');
    expect(engine.files()).toEqual([]);
    expect(engine.mirrors.status().map(({ name }) => name)).toEqual(['dumps']);
  });

  it('is told that another kind of peer does not list them', async () => {
    const engine = new Engine();
    await engine.open({ shares: [{ data: '*' }] });
    expect(await engine.once('*')).toMatchObject({ failure: { code: 'MIRROR_NO_LIST' } });
  });
});

const row = (pk: string, cells: Record<string, string>) => ({ pk, cells: new Map(Object.entries(cells)) });

describe('a table of a YaCy', () => {
  it('is mirrored whole, with keys that are filled with NUL and cells that no XML can hold', async () => {
    const { client, engine } = await atYacy();
    const rows = Array.from({ length: 120 }, (_, i) => row(`r${i}`, { name: `n${i}` }));
    await client.tables.set('birds', [...rows, row('a<&"k', { name: 'bell \u0007 and <&>' })]);
    await engine.open({ tables: [{ table: '*', format: 'ndjson' }] });
    await engine.run();
    expect(engine.files()).toEqual(expect.arrayContaining(['tables/api.ndjson', 'tables/robots.ndjson']));
    const lines = engine.read('tables/birds.ndjson').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(
      expect.arrayContaining([
        { pk: 'a<&"k', name: 'bell \u0007 and <&>' },
        { pk: 'r119', name: 'n119' },
      ]),
    );
    expect(lines).toHaveLength(121);
  });

  it('that is edited takes new rows, with keys of 12 bytes, changes and deletions', async () => {
    const { peer, client, engine } = await atYacy();
    await client.tables.set('birds', [row('k1', { name: 'Gull' }), row('k2', { name: 'Tern' })]);
    await engine.open({ tables: [{ table: 'birds', edit: true, deletes: true, format: 'ndjson' }] });
    await engine.once('birds');
    edit(engine, '{"pk":"k1","name":"Herring gull"}\n{"name":"Knot"}\n{"pk":"twelve_bytes","name":"Ruff"}\n');
    await until(async () => {
      await engine.once('birds');
      return peer.tables.row('birds', 'k1')?.name === 'Herring gull';
    }, 'the edits reached the peer');
    const shown = await client.tables.read({ table: 'birds' });
    const names = new Map(shown?.rows.map(({ pk, cells }) => [cells.get('name'), pk]));
    expect([...names.keys()].sort()).toEqual(['Herring gull', 'Knot', 'Ruff']);
    expect(names.get('Knot')).toMatch(/^[0-9a-z]{12}$/);
    expect(engine.read('tables/birds.ndjson')).toContain(names.get('Knot'));
  });

  it('does not take a key that it would cut: an alarm names the line, and nothing is written', async () => {
    const { peer, client, engine } = await atYacy();
    await client.tables.set('birds', [row('k1', { name: 'Gull' })]);
    await engine.open({ tables: [{ table: 'birds', edit: true, format: 'ndjson' }] });
    await engine.once('birds');
    const text = '{"pk":"k1","name":"Gull!"}\n{"pk":"ééééééé","name":"Knot"}\n';
    edit(engine, text);
    const before = peer.served.length;
    await until(async () => (await engine.once('birds')).alarm !== undefined, 'the alarm');
    const [{ alarm } = {}] = engine.mirrors.status();
    expect(alarm?.code).toBe('EDIT_UNREADABLE');
    expect(alarm?.message).toContain('line 2: the key "ééééééé" has 14 bytes');
    expect(peer.served.slice(before).filter(({ target }) => target.startsWith('/api/table_p'))).toEqual([]);
    expect(engine.read('tables/birds.ndjson')).toBe(text);
  });
});

/** As a person does, a while ago. */
function edit(engine: Engine, text: string): void {
  const path = join(engine.root, 'tables/birds.ndjson');
  writeFileSync(`${path}~`, text);
  const at = Date.now() / 1000 - 60;
  utimesSync(`${path}~`, at, at);
  renameSync(`${path}~`, path);
}

it('citations of a YaCy come for what it knows, and a document that it does not know is no failure', async () => {
  const { client, engine, peer } = await atYacy();
  const sentence = 'This is a sentence that is long enough to stand in two documents.';
  const [known, other, unknown] = ['a.txt', 'b.txt', 'c.txt'].map((path) => pendingRecord(path));
  if (!known || !other || !unknown) throw new Error('three items');
  const push = [known, other].map(({ url }) => ({
    url,
    collection: 'inbox',
    data: Buffer.from(sentence),
    contentType: 'text/plain',
  }));
  await client.push(push);
  await until(() => peer.search('sentence').length === 2, 'both are committed');
  await engine.open({ citations: [{ folder: 'inbox' }] });
  for (const item of [known, other, unknown]) engine.state.put(lifeOf(item)[2]);
  const report = await engine.once('citations/inbox');
  expect(report.failure).toBeUndefined();
  expect(report.notes).toBeUndefined();
  expect(engine.files()).toEqual(['citations/inbox/a.txt.json', 'citations/inbox/b.txt.json']);
  expect(engine.read('citations/inbox/a.txt.json')).toContain(other.url);
});
