import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { checkContent } from '../../src/mirror/share.js';
import { State } from '../../src/state/state.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { FakePeer, peerError, type Shared } from '../support/mirror-peer.js';
import { MirrorWorld, mirrored } from '../support/mirror-world.js';
import { until } from '../support/wait.js';

const LIST: Shared = { type: 'text/plain', content: 'one\n' };
const LOGIN = '<!DOCTYPE html>\n<html><body>Please log in</body></html>';

/** A shared object that was mirrored once. */
async function share(more: object = {}, clock?: FakeClock, data = 'list.txt', first = LIST) {
  const settings = { shares: [{ data, ...more }] };
  const { peer, world } = await mirrored(settings, { objects: { [data]: first } }, clock);
  return {
    peer,
    world,
    settings,
    once: () => world.once(data),
    put: (content: string) => peer.objects.set(data, { ...first, content }),
  };
}

const refuse = () => Promise.reject(peerError('PEER_ANSWER'));

describe('a mirrored share', () => {
  it('becomes a file, and an unchanged object keeps its mtime', async () => {
    const { world, once, put } = await share();
    expect(world.read('shares/list.txt')).toBe('one\n');
    const before = world.mtime('shares/list.txt');
    expect(await once()).toMatchObject({ changed: false, bytes: 4, type: 'text/plain' });
    expect(world.mtime('shares/list.txt')).toBe(before);
    put('two\n');
    expect(await once()).toMatchObject({ changed: true });
    expect(world.read('shares/list.txt')).toBe('two\n');
  });

  it('keeps earlier versions beside it as configured', async () => {
    const { world, once, put } = await share({ versions: 2 });
    for (const content of ['two\n', 'three\n', 'four\n']) {
      put(content);
      await once();
    }
    expect(world.files()).toEqual(['shares/list.txt', 'shares/list.txt.1', 'shares/list.txt.2']);
    expect(world.read('shares/list.txt.1')).toBe('three\n');
  });

  it('counts failures in a row, delays no other mirror, and resets the count after a success', async () => {
    const { peer, world, once } = await share();
    peer.onAsk = refuse;
    for (let i = 1; i <= 6; i += 1)
      expect(await once()).toMatchObject({ failures: i, failure: { code: 'PEER_ANSWER' } });
    expect([world.circuit, world.read('shares/list.txt')]).toEqual(['closed', 'one\n']);
    peer.onAsk = () => {};
    const report = await once();
    expect([report.failures, report.failure]).toEqual([undefined, undefined]);
    expect(world.logged.filter((line) => line.includes('no usable answer'))).toHaveLength(1);
    expect(world.logged).toContain('info: mirror list.txt: works again');
  });

  it('replaces a failure by a condition, which no later failure ends', async () => {
    const { peer, once } = await share();
    peer.onAsk = refuse;
    await once();
    peer.onAsk = () => {};
    peer.objects.clear();
    const { condition, failure, failures } = await once();
    expect([condition?.code, failure, failures]).toEqual(['SHARE_GONE', undefined, undefined]);
    peer.onAsk = refuse;
    expect(await once()).toMatchObject({ condition: { code: 'SHARE_GONE' }, failures: 1 });
  });

  it.each(['changed', 'removed'])('is put back and logged after somebody %s it', async (what) => {
    const { world, once } = await share();
    if (what === 'changed') world.write('shares/list.txt', 'mine\n');
    else rmSync(join(world.root, 'shares/list.txt'));
    expect(await once()).toMatchObject({ changed: true, bytes: 4 });
    expect(world.read('shares/list.txt')).toBe('one\n');
    expect(world.logged.join()).toContain(
      'changed or removed shares/list.txt, and it was put back',
    );
  });

  it('reports when it was tried, when it was current, and when it changed', async () => {
    const clock = new FakeClock();
    const { peer, once } = await share({}, clock);
    const first = clock.now();
    await clock.advance(1_000);
    expect(await once()).toMatchObject({ succeededAt: first + 1_000, changedAt: first });
    peer.objects.clear();
    await clock.advance(1_000);
    expect(await once()).toMatchObject({ triedAt: first + 2_000, succeededAt: first + 1_000 });
  });

  it('has its record on disk when a run ends', async () => {
    const { world } = await share();
    expect(world.state.figures().unsaved).toBe(0);
    expect((await State.read(world.stateDir)).meta('mirror/list.txt')).toMatchObject({ bytes: 4 });
  });
});

const IMAGE: Shared = { type: 'image/png', content: '\x89PNG' };
const JSON_DATA: Shared = { type: 'application/json', content: '{"a":1}' };
const LARGE: Shared = {
  type: 'text/plain',
  content: Array.from({ length: 100 }, () => 'x'.repeat(100)),
};

describe.each<[string, string, Shared, Shared | undefined]>([
  ['SHARE_GONE', 'list.txt', LIST, undefined],
  ['SHARE_EMPTY', 'list.txt', LIST, { type: 'text/plain', content: '' }],
  ['SHARE_HTML', 'list.txt', LIST, { type: 'text/html', content: '<div>Oh no</div>' }],
  ['SHARE_HTML', 'list.txt', LIST, { type: 'text/plain', content: LOGIN }],
  ['SHARE_HTML', 'picture.png', IMAGE, { content: ['<!-- proxy -->', '\n<html', '>'] }],
  [
    'SHARE_TYPE',
    'list.txt',
    LIST,
    { type: 'application/json', content: '{"error":"no such object"}' },
  ],
  [
    'SHARE_TYPE',
    'prices.json',
    JSON_DATA,
    { type: 'text/plain', content: 'java.lang.Exception: Error' },
  ],
  [
    'SHARE_TYPE',
    'picture.png',
    IMAGE,
    { content: '<?xml version="1.0"?><Error>AccessDenied</Error>' },
  ],
  [
    'SHARE_TYPE',
    'picture.png',
    IMAGE,
    { type: 'image/png', content: '{"table":"prices","rows":[' },
  ],
  ['MIRROR_TOO_LARGE', 'list.txt', LIST, LARGE],
])('%s of %s', (code, data, first, bad) => {
  it('keeps the old file, is logged once, and ends with good data or when a person accepts it', async () => {
    const { peer, world, once, settings } = await share(
      { maxSize: '1 KiB' },
      undefined,
      data,
      first,
    );
    const path = `shares/${data}`;
    const [text, mtime] = [world.read(path), world.mtime(path)];
    const spoil = () =>
      bad === undefined ? peer.objects.delete(data) : peer.objects.set(data, bad);
    spoil();
    const raised = await once();
    expect(raised).toMatchObject({ condition: { code }, changed: false });
    await world.open(settings);
    const again = await once();
    expect([again.condition, again.failure]).toEqual([raised.condition, undefined]);
    expect([world.read(path), world.mtime(path)]).toEqual([text, mtime]);
    expect(world.files()).toEqual([path]);
    expect(world.logged.filter((line) => line.startsWith('warn:'))).toHaveLength(1);
    peer.objects.set(data, first);
    expect((await once()).condition).toBeUndefined();
    expect(world.logged).toContain(`info: mirror ${data}: does not need you any more`);
    expect(world.mtime(path)).toBe(mtime);
    spoil();
    await once();
    expect(await world.mirrors.accept(data)).toMatchObject({ changed: true });
    expect(world.status()?.condition).toBeUndefined();
    expect(world.has(path) ? world.read(path) : undefined).toBe(
      bad && [bad.content].flat().join(''),
    );
    // An accepted condition is not reported again, except that of maxSize.
    expect((await once()).condition?.code).toBe(code === 'MIRROR_TOO_LARGE' ? code : undefined);
  });
});

describe('accepting', () => {
  it('that an object is gone keeps a version, and waits for the object', async () => {
    const { peer, world, once } = await share({ versions: 1 });
    peer.objects.clear();
    await once();
    await world.mirrors.accept('list.txt');
    expect(world.files()).toEqual(['shares/list.txt.1']);
    const { changed, absentSince, condition, failure } = await once();
    expect([changed, absentSince, condition, failure]).toEqual([
      false,
      expect.any(Number),
      undefined,
      undefined,
    ]);
    peer.objects.set('list.txt', LIST);
    const back = await once();
    expect([back.changed, back.bytes, back.absentSince]).toEqual([true, 4, undefined]);
  });

  it('one condition does not accept another', async () => {
    const { world, once, put } = await share();
    put('');
    await once();
    put(LOGIN);
    expect(await world.mirrors.accept('list.txt')).toMatchObject({
      condition: { code: 'SHARE_HTML' },
    });
    expect(world.read('shares/list.txt')).toBe('one\n');
  });

  it('needs a condition and a known name', async () => {
    const { world } = await share();
    await expect(world.mirrors.accept('list.txt')).rejects.toMatchObject({
      code: 'MIRROR_NO_CONDITION',
    });
    await expect(world.mirrors.accept('lsit.txt')).rejects.toMatchObject({
      code: 'MIRROR_UNKNOWN',
      exitCode: 2,
      message: 'There is no mirror called "lsit.txt"; did you mean "list.txt"?',
      details: { what: '"lsit.txt"' },
    });
  });
});

describe('the kind of an object', () => {
  const was = (type: string, bytes = 4) => ({ before: { type, bytes } });
  /** The type and size before, the name in the peer, and what is accepted. */
  interface Known {
    readonly before?: { readonly type: string; readonly bytes: number };
    readonly data?: string;
    readonly accepted?: readonly string[];
  }
  const check = (content: string, said: string | undefined, { before, data, accepted }: Known) =>
    checkContent(Buffer.from(content), said, data ?? 'prices.bin', before, accepted ?? []);

  it.each([
    ['', 'text/plain', {}, 'SHARE_EMPTY'],
    [LOGIN, undefined, {}, 'SHARE_HTML'],
    ['Internal error: no table', 'text/plain', {}, 'SHARE_TYPE'],
    ['{"error":"no such object"}', 'application/json', { data: 'prices.csv' }, 'SHARE_TYPE'],
    ['Internal error: no table', 'text/plain', was('image/png'), 'SHARE_TYPE'],
  ])('refuses %j (%s) after %j until a person accepts it', (content, said, more, condition) => {
    expect(check(content, said, more)).toMatchObject({ condition });
    expect(check(content, said, { ...more, accepted: [condition] })).toHaveProperty('type');
  });

  it.each([
    ['', 'text/plain', was('text/plain', 0), 'text/plain'],
    [LOGIN, 'text/html', was('text/html'), 'text/html'],
    [LOGIN, 'text/html', { data: 'index.html' }, 'text/html'],
    ['error: none', 'text/plain', was('text/plain'), 'text/plain'],
    ['error: none', 'text/plain', { data: 'boot.log' }, 'text/plain'],
    ['\x89PNG error', 'image/png', was('text/plain'), 'image/png'],
    ['{"a":1}', 'application/json', {}, 'application/json'],
    ['{"a":1}', 'text/plain', was('text/plain', 0), 'application/json'],
    ['{"a":1}', undefined, { data: 'prices.json' }, 'application/json'],
    ['', 'text/html', { ...was('text/csv'), accepted: ['SHARE_EMPTY', 'SHARE_HTML'] }, 'text/csv'],
  ])('takes %j (%s) after %j', (content, said, more, type) => {
    expect(check(content, said, more)).toEqual({ type });
  });
});

it('stop ends an endless answer at once, and leaves the old file, its record and nothing else', async () => {
  const { peer, world } = await share();
  let pieces = 0;
  peer.share = async (_query, use, { signal } = {}) => {
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (; ; pieces += 1) {
        signal?.throwIfAborted();
        await nextTurn();
        yield Buffer.alloc(1_000, 'x');
      }
    }
    return use({ type: 'text/plain', size: undefined, lastModified: undefined, chunks: chunks() });
  };
  world.start();
  await until(() => pieces > 100, 'the answer is under way');
  expect(world.status()).toMatchObject({ running: true });
  const before = world.state.meta('mirror/list.txt');
  await world.stop();
  expect(world.files()).toEqual(['shares/list.txt']);
  expect(world.read('shares/list.txt')).toBe('one\n');
  expect((await State.read(world.stateDir)).meta('mirror/list.txt')).toEqual(before);
});

it.each(['everything stops', 'nobody waits for them any more', 'one ends as the disk fails'])(
  'shared objects that take long are called off all at once when %s',
  async (why) => {
    const peer = new FakePeer();
    const ends = new Map<string, () => void>();
    const calledOff: string[] = [];
    peer.share = ({ data }, _use, { signal } = {}) =>
      new Promise((resolve) => {
        ends.set(data, () => resolve(undefined));
        signal?.addEventListener('abort', () => void calledOff.push(data));
      });
    const end = () => {
      for (const each of ends.values()) each();
    };
    const world = new MirrorWorld(peer);
    afterwards('test', end);
    await world.open({ shares: ['a', 'b', 'c'].map((data) => ({ data })) });
    const running = world.mirrors.run(undefined);
    const first = running.next().catch((error: Error) => error.message);
    await until(() => ends.size === 3, 'all are under way');
    const commit = world.state.commit.bind(world.state);
    let over: Promise<unknown> = first;
    if (why === 'everything stops') over = world.mirrors.stop();
    else {
      if (why.includes('disk'))
        world.state.commit = () => Promise.reject(new Error('the disk fails'));
      ends.get('b')?.();
    }
    if (why.startsWith('nobody')) {
      expect(await first).toMatchObject({ value: { name: 'b' } });
      over = running.return();
    }
    await until(() => calledOff.length >= 2, 'the others are called off');
    world.state.commit = commit;
    end();
    await over;
    if (why.includes('disk')) expect(await first).toBe('the disk fails');
  },
);

describe('a pattern', () => {
  /** The peer lists `a` and `b`, as shared objects and as tables. */
  async function patterned(kind = 'shares') {
    const peer = new FakePeer();
    peer.listed = ['a', 'b'];
    for (const name of peer.listed) {
      peer.objects.set(name, { content: 'object' });
      peer.table(name, { k: { v: '1' } });
    }
    const at = (every: string) => ({
      [kind]: [{ [kind === 'shares' ? 'data' : 'table']: '*', every }],
    });
    const world = await new MirrorWorld(peer).open(at('1h'));
    await world.run();
    return { peer, world, at };
  }

  it.each(['shares', 'tables'])(
    'does not bring back an accepted loss, even if it is still listed (%s)',
    async (kind) => {
      const { peer, world, at } = await patterned(kind);
      peer.objects.delete('a');
      peer.tableRows.delete('a');
      await world.once('a');
      expect(await world.mirrors.accept('a')).toMatchObject({ isOver: true, changed: true });
      expect(world.names).toEqual(['*', 'b']);
      await world.configure(at('2h'));
      expect(world.names).toEqual(['*', 'b']);
    },
  );

  it('runs no mirror that ended while its run was queued', async () => {
    const { peer, world, at } = await patterned();
    peer.objects.delete('a');
    await world.once('a');
    await world.open(at('1h'));
    const accepted = world.mirrors.accept('a');
    await expect(world.once('a')).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
    expect(await accepted).toMatchObject({ isOver: true });
  });

  it('fails if the peer does not list its shared objects', async () => {
    const { world } = await mirrored({ shares: [{ data: '*' }] }, {});
    expect(world.status()).toMatchObject({ failure: { code: 'MIRROR_NO_LIST' } });
  });
});
