import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PeerClient } from '../../src/peer/client.js';
import type { PeerClientOptions } from '../../src/peer/client-options.js';
import { openPeer } from '../embedded/support.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { row } from '../support/fake-peer.js';
import type { MirrorSettings, MirrorWorld } from '../support/mirror-world.js';
import { temporaryDirectory } from '../support/temp.js';
import { world } from '../support/world.js';
import { timing } from '../wire/yacy/timing.js';
import { YacyModel } from '../wire/yacy/yacy-model.js';

async function worldAt(options: PeerClientOptions, mirrors: MirrorSettings, clock?: FakeClock) {
  const client = new PeerClient(options);
  afterwards('test', () => client.close());
  return { client, w: await world({ peer: client, mirrors, clock }) };
}

it('an object of the embedded peer is downloaded again only after a change, even one in the same second', async () => {
  const dir = temporaryDirectory();
  const { url, credentials } = await openPeer({ dir });
  const put = (content: string) => writeFileSync(join(dir, 'shares/words.txt'), content);
  put('one');
  const { w } = await worldAt(
    { dialect: 'standard', baseUrl: url, credentials },
    { shares: [{ data: 'words.txt' }] },
  );
  await w.once('words.txt');
  expect(w.status()?.version).toMatchObject({ etag: expect.stringMatching(/^"/) });
  expect(await w.once('words.txt')).toMatchObject({ changed: false, bytes: 3 });
  put('two');
  expect(await w.once('words.txt')).toMatchObject({ changed: true });
  expect(w.read('shares/words.txt')).toBe('two');
});

/** Writes a file as if it was saved a while ago. */
function edit(w: MirrorWorld<PeerClient>, text: string): void {
  const path = join(w.root, 'tables/birds.ndjson');
  writeFileSync(`${path}~`, text);
  const at = Date.now() / 1000 - 60;
  utimesSync(`${path}~`, at, at);
  renameSync(`${path}~`, path);
}

const AN_HOUR_AGO = Date.now() - 3_600_000;
const DUMP = 'dump/yacy_dump_x_ts.xml.gz';
const FILE = `shares/${DUMP}`;

async function atYacy(mirrors: MirrorSettings, clock?: FakeClock) {
  const peer = await YacyModel.start({ timing: timing(20) });
  return { peer, ...(await worldAt({ baseUrl: peer.url }, mirrors, clock)) };
}

describe('a file that a YaCy shares', () => {
  /** The file, mirrored once. */
  async function dump(content: string, at = AN_HOUR_AGO, clock?: FakeClock) {
    const { peer, w } = await atYacy({ shares: [{ data: DUMP }] }, clock);
    peer.share.put(DUMP, content, at);
    await w.once(DUMP);
    const asked = () =>
      peer.served.filter(({ target }) => target.startsWith('/share/')).map(({ status }) => status);
    return { peer, w, asked, once: () => w.once(DUMP) };
  }

  it('is downloaded only if it changed', async () => {
    const { peer, w, asked, once } = await dump('gulls');
    const first = w.status();
    expect(first).toMatchObject({ bytes: 5, type: 'application/gzip' });
    expect(await once()).toMatchObject({ changed: false, bytes: 5, sha256: first?.sha256 });
    peer.share.put(DUMP, 'terns', Date.now());
    expect(await once()).toMatchObject({ changed: true });
    expect(w.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 304, 200]);
  });

  it('is downloaded if it changed twice in one second', async () => {
    const { peer, w, once } = await dump('gulls', Date.now());
    peer.share.put(DUMP, 'terns', Date.now());
    await once();
    expect(w.read(FILE)).toBe('terns');
  });

  it('is downloaded if the local file is another, or of another peer', async () => {
    const { peer, w, asked, once } = await dump('gulls');
    w.write(FILE, 'mine!');
    expect(await once()).toMatchObject({ changed: true });
    expect(w.read(FILE)).toBe('gulls');
    peer.share.put('other', 'terns', AN_HOUR_AGO);
    await w.open({ shares: [{ data: 'other', name: DUMP, path: FILE }] });
    await once();
    expect(w.read(FILE)).toBe('terns');
    expect(asked()).toEqual([200, 200, 200]);
  });

  it('is downloaded once a week, because an older one looks unchanged', async () => {
    const clock = new FakeClock(Date.now());
    const { peer, w, once } = await dump('gulls', AN_HOUR_AGO, clock);
    peer.share.put(DUMP, 'terns', AN_HOUR_AGO - 1_000);
    await once();
    expect(w.read(FILE)).toBe('gulls');
    await clock.advance(8 * 86_400_000);
    await once();
    expect(w.read(FILE)).toBe('terns');
  });

  it('leaves the old file and nothing else if the download breaks off, and is downloaded the next time', async () => {
    const { peer, w, once } = await dump('old');
    // Bytes by chance begin like XML or JSON once in 900 times, and that is a condition of its own.
    const content = Buffer.alloc(3 * 2 ** 20, '\x1f\x8b\b gulls');
    peer.share.put(DUMP, content, Date.now());
    peer.share.breakOff(DUMP, 2 * 2 ** 20);
    expect((await once()).failure).toBeDefined();
    expect([w.read(FILE), w.files()]).toEqual(['old', [FILE]]);
    await once();
    expect(readFileSync(join(w.root, FILE)).equals(content)).toBe(true);
  });
});

describe('a pattern over what a YaCy shares', () => {
  it('follows all matching objects of its group, later ones too, and reports missing ones', async () => {
    const settings = { shares: [{ data: '*', c: 'dump', name: 'dumps', path: 'd/{data}' }] };
    const { peer, w } = await atYacy(settings);
    for (const name of ['dump/a.gz', 'dump/old/b.gz', 'list.txt'])
      peer.share.put(name, name, AN_HOUR_AGO);
    await w.run();
    expect(w.status('dumps')?.notes).toEqual(['Follows 2 shared objects of the peer.']);
    expect(w.files()).toEqual(['d/a.gz', 'd/old/b.gz']);
    peer.share.put('dump/ä #%.gz', 'd', AN_HOUR_AGO);
    peer.share.remove('dump/a.gz');
    await w.open(settings);
    await w.run();
    expect(w.read('d/ä #%.gz')).toBe('d');
    expect(peer.served.map(({ target }) => target)).toContain('/share/dump/%C3%A4%20%23%25.gz');
    const gone = { share: 'dump/a.gz', path: 'd/a.gz', condition: { code: 'SHARE_GONE' } };
    expect(w.status('dumps/dump/a.gz')).toMatchObject(gone);
    expect(w.read('d/a.gz')).toBe('dump/a.gz');
  });
});

describe('a table of a YaCy', () => {
  /** The table, mirrored once so that it can be edited. */
  async function birds(...rows: ReturnType<typeof row>[]) {
    const { peer, client, w } = await atYacy({
      tables: [{ table: 'birds', edit: true, deletes: true, format: 'ndjson' }],
    });
    await client.tables.set('birds', rows);
    await w.once('birds');
    return { peer, client, w };
  }

  it('takes new rows with keys of 12 bytes, changes and deletions from an edited file', async () => {
    const { peer, client, w } = await birds(
      row('k1', { name: 'Gull' }),
      row('k2', { name: 'Tern' }),
    );
    edit(
      w,
      '{"pk":"k1","name":"Herring gull"}\n{"name":"Knot"}\n{"pk":"twelve_bytes","name":"Ruff"}\n',
    );
    await w.once('birds');
    expect(peer.tables.row('birds', 'k1')?.name).toBe('Herring gull');
    const shown = await client.tables.read({ table: 'birds' });
    const names = new Map(shown?.rows.map(({ pk, cells }) => [cells.get('name'), pk]));
    expect([...names.keys()].sort()).toEqual(['Herring gull', 'Knot', 'Ruff']);
    expect(names.get('Knot')).toMatch(/^[0-9a-z]{12}$/);
    expect(w.read('tables/birds.ndjson')).toContain(names.get('Knot'));
  });

  it('gets no key that it would cut: a condition names the line, and nothing is written', async () => {
    const { peer, w } = await birds(row('k1', { name: 'Gull' }));
    const text = '{"pk":"k1","name":"Gull!"}\n{"pk":"ééééééé","name":"Knot"}\n';
    edit(w, text);
    const before = peer.served.length;
    const { condition } = await w.once('birds');
    expect(condition?.code).toBe('EDIT_UNREADABLE');
    expect(condition?.message).toContain('line 2: the key "ééééééé" has 14 bytes');
    expect(
      peer.served.slice(before).filter(({ target }) => target.startsWith('/api/table_p')),
    ).toEqual([]);
    expect(w.read('tables/birds.ndjson')).toBe(text);
  });
});
