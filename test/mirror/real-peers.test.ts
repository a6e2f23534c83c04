import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { openPeer } from '../embedded/support.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';
import { Engine, row } from './engine.js';

function engineAt(options: PeerClientOptions, clock?: FakeClock) {
  const client = new PeerClient(options);
  afterwards('test', () => client.close());
  return { client, engine: new Engine(client, clock) };
}

it('an object of the embedded peer is not sent again while it is the same; one of the same size and second is', async () => {
  const dir = temporaryDirectory();
  const { url, credentials } = await openPeer({ dir });
  const put = (content: string) => writeFileSync(join(dir, 'shares/words.txt'), content);
  put('one');
  const { engine } = engineAt({ dialect: 'standard', baseUrl: url, credentials });
  await engine.open({ shares: [{ data: 'words.txt' }] });
  await engine.once('words.txt');
  expect(engine.status()?.version).toMatchObject({ etag: expect.stringMatching(/^"/) });
  expect(await engine.once('words.txt')).toMatchObject({ changed: false, bytes: 3 });
  put('two');
  expect(await engine.once('words.txt')).toMatchObject({ changed: true });
  expect(engine.read('shares/words.txt')).toBe('two');
});

/** As a person does, a while ago. */
function edit(engine: Engine<PeerClient>, text: string): void {
  const path = join(engine.root, 'tables/birds.ndjson');
  writeFileSync(`${path}~`, text);
  const at = Date.now() / 1000 - 60;
  utimesSync(`${path}~`, at, at);
  renameSync(`${path}~`, path);
}

const AN_HOUR_AGO = Date.now() - 3_600_000;
const DUMP = 'dump/yacy_dump_x_ts.xml.gz';
const FILE = `shares/${DUMP}`;

async function atYacy(clock?: FakeClock) {
  const peer = await YacyModel.start({ timing: timing(20) });
  return { peer, ...engineAt({ baseUrl: peer.url }, clock) };
}

describe('a file that a YaCy shares', () => {
  /** The file, mirrored once. */
  async function dump(content: string, at = AN_HOUR_AGO, clock?: FakeClock) {
    const { peer, engine } = await atYacy(clock);
    peer.share.put(DUMP, content, at);
    await engine.open({ shares: [{ data: DUMP }] });
    await engine.once(DUMP);
    const asked = () =>
      peer.served.filter(({ target }) => target.startsWith('/share/')).map(({ status }) => status);
    return { peer, engine, asked, once: () => engine.once(DUMP) };
  }

  it('is asked for only if it changed, and costs nothing while it did not', async () => {
    const { peer, engine, asked, once } = await dump('gulls');
    const first = engine.status();
    expect(first).toMatchObject({ bytes: 5, type: 'application/gzip' });
    expect(await once()).toMatchObject({ changed: false, bytes: 5, sha256: first?.sha256 });
    peer.share.put(DUMP, 'terns', Date.now());
    expect(await once()).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 304, 200]);
  });

  it('that changed twice in one second is not missed', async () => {
    const { peer, engine, once } = await dump('gulls', Date.now());
    peer.share.put(DUMP, 'terns', Date.now());
    await once();
    expect(engine.read(FILE)).toBe('terns');
  });

  it('comes whole where the file here is another, or is of another peer', async () => {
    const { peer, engine, asked, once } = await dump('gulls');
    engine.write(FILE, 'mine!');
    expect(await once()).toMatchObject({ changed: true });
    expect(engine.read(FILE)).toBe('gulls');
    peer.share.put('other', 'terns', AN_HOUR_AGO);
    await engine.open({ shares: [{ data: 'other', name: DUMP, path: FILE }] });
    await once();
    expect(engine.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 200, 200]);
  });

  it('comes whole once a week, since an older one in its place looks unchanged', async () => {
    const clock = new FakeClock(Date.now());
    const { peer, engine, once } = await dump('gulls', AN_HOUR_AGO, clock);
    peer.share.put(DUMP, 'terns', AN_HOUR_AGO - 1_000);
    await once();
    expect(engine.read(FILE)).toBe('gulls');
    await clock.advance(8 * 86_400_000);
    await once();
    expect(engine.read(FILE)).toBe('terns');
  });

  it('that breaks off leaves the old file and nothing else, and comes whole the next time', async () => {
    const { peer, engine, once } = await dump('old');
    // Bytes by chance begin like XML or JSON once in 900 times, and that is an alarm of its own.
    const content = Buffer.alloc(3 * 2 ** 20, '\x1f\x8b\b gulls');
    peer.share.put(DUMP, content, Date.now());
    peer.share.breakOff(DUMP, 2 * 2 ** 20);
    expect((await once()).failure).toBeDefined();
    expect([engine.read(FILE), engine.files()]).toEqual(['old', [FILE]]);
    await once();
    expect(readFileSync(join(engine.root, FILE)).equals(content)).toBe(true);
  });
});

describe('a pattern over what a YaCy shares', () => {
  it('follows all that match in its group, through directories, those that come later, and misses what is gone', async () => {
    const { peer, engine } = await atYacy();
    for (const name of ['dump/a.gz', 'dump/old/b.gz', 'list.txt'])
      peer.share.put(name, name, AN_HOUR_AGO);
    const settings = { shares: [{ data: '*', c: 'dump', name: 'dumps', path: 'd/{data}' }] };
    await engine.open(settings);
    await engine.run();
    expect(engine.status('dumps')?.notes).toEqual(['Follows 2 shared objects of the peer.']);
    expect(engine.files()).toEqual(['d/a.gz', 'd/old/b.gz']);
    peer.share.put('dump/ä #%.gz', 'd', AN_HOUR_AGO);
    peer.share.remove('dump/a.gz');
    await engine.open(settings);
    await engine.run();
    expect(engine.read('d/ä #%.gz')).toBe('d');
    expect(peer.served.map(({ target }) => target)).toContain('/share/dump/%C3%A4%20%23%25.gz');
    const gone = { share: 'dump/a.gz', path: 'd/a.gz', alarm: { code: 'SHARE_GONE' } };
    expect(engine.status('dumps/dump/a.gz')).toMatchObject(gone);
    expect(engine.read('d/a.gz')).toBe('dump/a.gz');
  });
});

describe('a table of a YaCy', () => {
  /** The table, mirrored once so that it can be edited. */
  async function birds(...rows: ReturnType<typeof row>[]) {
    const { peer, client, engine } = await atYacy();
    await client.tables.set('birds', rows);
    await engine.open({
      tables: [{ table: 'birds', edit: true, deletes: true, format: 'ndjson' }],
    });
    await engine.once('birds');
    return { peer, client, engine };
  }

  it('that is edited takes new rows, with keys of 12 bytes, changes and deletions', async () => {
    const { peer, client, engine } = await birds(
      row('k1', { name: 'Gull' }),
      row('k2', { name: 'Tern' }),
    );
    edit(
      engine,
      '{"pk":"k1","name":"Herring gull"}\n{"name":"Knot"}\n{"pk":"twelve_bytes","name":"Ruff"}\n',
    );
    await engine.once('birds');
    expect(peer.tables.row('birds', 'k1')?.name).toBe('Herring gull');
    const shown = await client.tables.read({ table: 'birds' });
    const names = new Map(shown?.rows.map(({ pk, cells }) => [cells.get('name'), pk]));
    expect([...names.keys()].sort()).toEqual(['Herring gull', 'Knot', 'Ruff']);
    expect(names.get('Knot')).toMatch(/^[0-9a-z]{12}$/);
    expect(engine.read('tables/birds.ndjson')).toContain(names.get('Knot'));
  });

  it('does not take a key that it would cut: an alarm names the line, and nothing is written', async () => {
    const { peer, engine } = await birds(row('k1', { name: 'Gull' }));
    const text = '{"pk":"k1","name":"Gull!"}\n{"pk":"ééééééé","name":"Knot"}\n';
    edit(engine, text);
    const before = peer.served.length;
    const { alarm } = await engine.once('birds');
    expect(alarm?.code).toBe('EDIT_UNREADABLE');
    expect(alarm?.message).toContain('line 2: the key "ééééééé" has 14 bytes');
    expect(
      peer.served.slice(before).filter(({ target }) => target.startsWith('/api/table_p')),
    ).toEqual([]);
    expect(engine.read('tables/birds.ndjson')).toBe(text);
  });
});
