import { createHash } from 'node:crypto';
import { silentLogger } from '../../src/lib/logger.js';
import type { Entry, PendingItem, Sent } from '../../src/state/entry.js';
import type { AdapterOptions } from '../../src/state/journal.js';
import { State, type StateView } from '../../src/state/state.js';
import { accepted, confirmed } from '../../src/state/transitions.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';

const SINCE = Date.UTC(2026, 0, 1);

/** Makes a realistic record of a new file. */
export function pendingRecord(path: string, folder = 'inbox', content = path): PendingItem {
  const sha256 = createHash('sha256').update(content).digest('hex');
  const url = `https://files.example.org/${folder}/${path.split('/').map(encodeURIComponent).join('/')}`;
  return {
    folder,
    path,
    url,
    collection: folder,
    status: 'pending',
    version: {
      size: 2048,
      mtimeMs: SINCE + 0.1234,
      ctimeMs: SINCE + 0.4567,
      ino: 1_234_567,
      sha256,
      encoding: 'utf-8',
    },
    attempts: 0,
    notBefore: SINCE,
    since: SINCE,
    history: [{ status: 'pending', at: SINCE, note: 'new file' }],
  };
}

export function sentOf(item: PendingItem): Sent {
  const { url, collection, version } = item;
  return {
    sha256: version.sha256,
    size: version.size,
    digest: version.sha256,
    url,
    collection,
    at: SINCE + 1_000,
    peerAt: SINCE + 2_000,
  };
}

/** Returns the records of a file's life when nothing goes wrong. */
export function lifeOf(item: PendingItem): readonly [Entry, Entry, Entry] {
  const inPeer = accepted(item, sentOf(item), SINCE + 3_000);
  const evidence = {
    kind: 'lastModified',
    at: SINCE + 4_000,
    shown: '2026-01-01T00:00:00.000Z',
  } as const;
  return [item, inPeer, confirmed(inPeer, evidence, SINCE + 5_000)];
}

/** Opens a state in `dir`. The end of the test closes it if it is still open. */
export async function opened(dir: string, options: Partial<AdapterOptions> = {}): Promise<State> {
  const state = await State.open(dir, { clock: new FakeClock(), log: silentLogger, ...options });
  afterwards('test', () => state.close().catch(() => undefined));
  return state;
}

/** Returns the paths of all records on disk. */
export async function pathsOf(dir: string): Promise<string[]> {
  return [...(await State.read(dir)).entries.all()].map(({ path }) => path).sort();
}

/** Returns all records, sorted by path. */
export function sorted({ entries }: StateView): readonly Entry[] {
  return [...entries.all()].sort((a, b) => (a.path < b.path ? -1 : 1));
}
