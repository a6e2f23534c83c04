import { createHash } from 'node:crypto';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Destination, isAway } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { gone, read } from '../../src/state/transitions.js';
import { QUICK, unreachable, type World, withFakeClock, world } from '../support/world.js';

/** Settings with which an item that is not shown is not pushed again. */
const PATIENT = {
  ...QUICK,
  confirm: { ...QUICK.confirm, timeout: 3_600_000, maxInterval: 50, hold: 0 },
};
const URL = 'https://x.example/docs/a.txt';
const ONE: Destination = { folder: 'one', path: 'a.txt', url: URL, collection: 'red' };
const TWO: Destination = { folder: 'two', path: 'a.txt', url: URL, collection: 'blue' };

let w: World;
beforeEach(async () => {
  w = await world(PATIENT, withFakeClock);
});

/** Puts a file into the state, as the watcher of a folder with this URL and collection does. */
function take(to: Destination): void {
  const file = w.fileOf(to);
  const content = 'the text';
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
  const { size, mtimeMs, ctimeMs, ino } = statSync(file);
  const sha256 = createHash('sha256').update(content).digest('hex');
  const version = { size, mtimeMs, ctimeMs, ino, sha256, encoding: 'utf-8' as const };
  w.state.put(read(w.state.get(to.folder, to.path), to, version, w.clock.now()));
}

/** Records in the state that the file was removed. */
function drop({ folder, path }: Destination): void {
  const entry = w.state.get(folder, path);
  if (entry === undefined || isAway(entry) || entry.status === 'skipped')
    throw new Error('not there');
  w.state.put(gone(entry, w.clock.now()));
}

const recordOf = ({ folder, path }: Destination) => w.state.get(folder, path);
const isConfirmed = (to: Destination) =>
  w.until(() => recordOf(to)?.status === 'confirmed', `${to.folder}/${to.path} is confirmed`);
const pushed = (times: number) => w.until(() => w.peer.pushes.length === times, `${times} pushes`);
const inPeer = (collection: string, url = URL) =>
  w.until(
    () => w.peer.documents.get(url)?.collection === collection,
    `${collection} came to the peer`,
  );

async function confirm(to: Destination): Promise<void> {
  take(to);
  await isConfirmed(to);
}

async function confirmAndDrop(to: Destination): Promise<void> {
  await confirm(to);
  drop(to);
}

/** Restores a file unchanged whose document the peer has lost, and waits until it is confirmed. */
async function confirmAnew(to: Destination): Promise<void> {
  take(to);
  expect(recordOf(to)?.status).toBe('pending');
  await isConfirmed(to);
  expect(w.peer.documents.get(to.url)?.collection).toBe(to.collection);
}

const ACCENTED = 'https://x.example/docs/%C3%BC%20x.txt';
/** Reasons why another file gets the same URL. */
const OTHERS: readonly (readonly [string, Destination, Destination])[] = [
  ['a folder of another name', ONE, TWO],
  ['a folder whose URL is that of one of its directories', { ...ONE, path: 'docs/a.txt' }, TWO],
  [
    'its own folder, whose URL was a longer one',
    ONE,
    { ...ONE, path: 'docs/a.txt', collection: 'blue' },
  ],
  [
    'a name in another Unicode form',
    { ...ONE, path: 'u\u0308 x.txt', url: ACCENTED },
    { ...ONE, path: '\u00fc x.txt', url: ACCENTED, collection: 'blue' },
  ],
];

describe('a file that comes back in a version that the peer was sent before', () => {
  it.each(OTHERS)('is pushed again if %s was pushed to its URL since', async (_, one, two) => {
    await confirmAndDrop(one);
    await confirmAndDrop(two);
    await confirmAnew(one);
    expect(w.peer.pushes.length).toBe(3);
  });

  it('is pushed again if a later run pushed another file to its URL', async () => {
    await confirmAndDrop(ONE);
    await w.stop();
    await w.start(PATIENT);
    await confirmAndDrop(TWO);
    await confirmAnew(ONE);
  });

  it('loses its push record on disk before the other push is sent, and is pushed after it', async () => {
    await confirmAndDrop(ONE);
    const { release } = w.peer.hold();
    take(TWO);
    await pushed(2);
    const onDisk = await State.read(w.stateDir);
    expect(onDisk.get('one', 'a.txt')).toMatchObject({ status: 'gone', url: URL });
    expect(onDisk.get('one', 'a.txt')).not.toHaveProperty('sent');
    expect(onDisk.get('two', 'a.txt')).toHaveProperty('inFlight');
    drop(TWO);
    take(ONE);
    expect(recordOf(ONE)?.status).toBe('pending');
    release();
    await isConfirmed(ONE);
    await inPeer('red');
    expect(w.peer.pushes.length).toBe(3);
  });

  it('is looked up and not pushed if others were pushed to other URLs only', async () => {
    await confirmAndDrop(ONE);
    await confirm({ ...TWO, url: 'https://x.example/other/a.txt' });
    await confirm({ ...TWO, path: 'docs/a.txt', url: 'https://x.example/other/docs/a.txt' });
    await confirm({ ...ONE, path: 'b.txt', url: 'https://x.example/docs/b.txt' });
    await confirm(ONE);
    await pushed(4);
  });

  it('stays confirmed at its new URL when another file takes its former one', async () => {
    await confirm(ONE);
    await confirm({ ...ONE, url: 'https://x.example/elsewhere/a.txt' });
    const before = recordOf(ONE);
    await confirm(TWO);
    expect(recordOf(ONE)).toStrictEqual(before);
    await pushed(3);
  });
});

describe('a file whose URL another file takes and leaves again', () => {
  it('is pushed again, though it was confirmed and did not change', async () => {
    await confirm(ONE);
    take(TWO);
    await inPeer('blue');
    drop(TWO);
    await inPeer('red');
    await isConfirmed(ONE);
  });

  it('is pushed again, though it was accepted', async () => {
    w.peer.visibleAfter = Number.POSITIVE_INFINITY;
    take(ONE);
    await w.until(() => recordOf(ONE)?.status === 'accepted', 'accepted');
    take(TWO);
    await pushed(2);
    drop(TWO);
    await pushed(3);
    w.peer.visibleAfter = 0;
    await isConfirmed(ONE);
    await inPeer('red');
  });

  it('is pushed again, and not looked up, when its push was never answered', async () => {
    w.peer.failsFor('', () => unreachable('maybe'));
    w.peer.onLookup = () => {
      throw unreachable('no');
    };
    take(ONE);
    await w.until(
      () => w.peer.pushes.length === 1 && w.uplink.status().inFlight === 0,
      'unanswered',
    );
    expect(recordOf(ONE)).toMatchObject({ status: 'pending', inFlight: { url: URL } });
    const { release } = w.peer.hold();
    take(TWO);
    await pushed(2);
    expect(recordOf(ONE)).toMatchObject({ status: 'pending' });
    expect(recordOf(ONE)).not.toHaveProperty('inFlight');
    drop(TWO);
    release();
    await inPeer('red');
  });
});

describe('a file whose record has a URL that belongs to another file now', () => {
  it('is tried again with a delay, and pushed once it has its own URL', async () => {
    const elsewhere: Destination = { ...ONE, url: 'https://x.example/elsewhere/a.txt' };
    await confirm(ONE);
    const turns = new Set<number>();
    w.isAt = ({ folder, url }) => {
      const isWrong = folder === 'one' && url === URL;
      if (isWrong) turns.add(w.clock.now());
      return !isWrong;
    };
    await confirm(TWO);
    await w.until(() => turns.size > 0 && w.uplink.status().inFlight === 0, 'its turn is over');
    expect([recordOf(ONE)?.status, recordOf(TWO)?.status]).toEqual(['pending', 'confirmed']);
    const first = Math.max(...turns);
    await w.until(() => Math.max(...turns) > first + 5_000, 'it has another turn');
    expect(Math.max(...turns) - first).toBeGreaterThanOrEqual(9_000);
    await confirm(elsewhere);
    expect(w.peer.pushes).toEqual([[URL], [URL], [elsewhere.url]]);
    await inPeer('blue');
  });
});
