import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { State } from '../../src/state/state.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { until } from '../support/wait.js';
import { Engine, FakePeer, peerError, type Shared } from './engine.js';

const LIST: Shared = { type: 'text/plain', content: 'one\n' };
const LOGIN = '<!DOCTYPE html>\n<html><body>Please log in</body></html>';

/** A share that was mirrored once. */
async function mirrored(data = 'list.txt', first: Shared = LIST, more: object = {}) {
  const peer = new FakePeer();
  const engine = new Engine(peer);
  peer.objects.set(data, first);
  await engine.open({ shares: [{ data, ...more }] });
  await engine.once(data);
  return { peer, engine };
}

describe('a mirrored share', () => {
  it('becomes a file; while the peer has the same, nothing of it changes, not even mtime', async () => {
    const { peer, engine } = await mirrored();
    expect(engine.read('shares/list.txt')).toBe('one\n');
    const before = engine.mtime('shares/list.txt');
    expect(await engine.once('list.txt')).toMatchObject({ changed: false, bytes: 4, type: 'text/plain' });
    expect(engine.mtime('shares/list.txt')).toBe(before);
    peer.objects.set('list.txt', { ...LIST, content: 'two\n' });
    expect(await engine.once('list.txt')).toMatchObject({ changed: true });
    expect(engine.read('shares/list.txt')).toBe('two\n');
  });

  it('has its earlier versions beside it where they are asked for', async () => {
    const { peer, engine } = await mirrored('list.txt', LIST, { versions: 2 });
    for (const content of ['two\n', 'three\n', 'four\n']) {
      peer.objects.set('list.txt', { ...LIST, content });
      await engine.once('list.txt');
    }
    expect(engine.files()).toEqual(['shares/list.txt', 'shares/list.txt.1', 'shares/list.txt.2']);
    expect(engine.read('shares/list.txt.1')).toBe('three\n');
  });

  it('remembers after a restart what it had', async () => {
    const { peer, engine } = await mirrored();
    peer.objects.delete('list.txt');
    await engine.open({ shares: [{ data: 'list.txt' }] });
    expect(await engine.once('list.txt')).toMatchObject({ alarm: { code: 'SHARE_GONE' }, bytes: 4 });
    expect(engine.mirrors.status()).toMatchObject([{ name: 'list.txt', alarm: { code: 'SHARE_GONE' } }]);
  });

  it('that the peer never had is a failure, and no alarm', async () => {
    const engine = new Engine();
    await engine.open({ shares: [{ data: 'nothing' }] });
    const report = await engine.once('nothing');
    expect(report).toMatchObject({ failure: { code: 'MIRROR_NOTHING' }, failures: 1 });
    expect(report.alarm).toBeUndefined();
    expect(engine.files()).toEqual([]);
  });

  it('counts failures in a row, and forgets them when it works again', async () => {
    const { peer, engine } = await mirrored();
    peer.onAsk = () => {
      throw peerError('PEER_ANSWER');
    };
    await engine.once('list.txt');
    expect(await engine.once('list.txt')).toMatchObject({ failures: 2, failure: { code: 'PEER_ANSWER' } });
    expect(engine.read('shares/list.txt')).toBe('one\n');
    peer.onAsk = () => {};
    const report = await engine.once('list.txt');
    expect(report.failures).toBeUndefined();
    expect(report.failure).toBeUndefined();
    expect(engine.said.filter((line) => line.includes('no usable answer'))).toHaveLength(1);
    expect(engine.said).toContain('info: mirror list.txt: works again');
  });

  it.each(['changed', 'removed'] as const)('that somebody %s is put back, and that is said', async (what) => {
    const { engine } = await mirrored();
    if (what === 'changed') engine.write('shares/list.txt', 'mine\n');
    else rmSync(join(engine.root, 'shares/list.txt'));
    expect(await engine.once('list.txt')).toMatchObject({ changed: true });
    expect(engine.read('shares/list.txt')).toBe('one\n');
    expect(engine.said.join()).toContain('changed or removed shares/list.txt, and it was put back');
  });

  it('whose record was lost in a crash is found as it should be, and not written again', async () => {
    const { engine } = await mirrored();
    const before = engine.mtime('shares/list.txt');
    engine.state.setMeta('mirror/list.txt', undefined);
    const report = await engine.once('list.txt');
    expect(report).toMatchObject({ changed: false, bytes: 4 });
    expect(report.succeededAt).toBeDefined();
    expect(engine.mtime('shares/list.txt')).toBe(before);
  });

  it('says when it was tried, when it was known to be right, and when it changed', async () => {
    const clock = new FakeClock();
    const peer = new FakePeer();
    const engine = new Engine(peer, clock);
    peer.objects.set('list.txt', LIST);
    await engine.open({ shares: [{ data: 'list.txt' }] });
    const first = clock.now();
    await engine.once('list.txt');
    await clock.advance(1_000);
    expect(await engine.once('list.txt')).toMatchObject({ succeededAt: first + 1_000, changedAt: first });
    peer.objects.delete('list.txt');
    await clock.advance(1_000);
    expect(await engine.once('list.txt')).toMatchObject({
      triedAt: first + 2_000,
      succeededAt: first + 1_000,
    });
  });

  it('has its record on disk when a run is over', async () => {
    const { engine } = await mirrored();
    expect(engine.state.figures().unsaved).toBe(0);
    expect((await State.read(engine.stateDir)).meta('mirror/list.txt')).toMatchObject({ bytes: 4 });
  });

  it('that cannot be read holds up no other', async () => {
    const { peer, engine } = await mirrored();
    peer.onAsk = () => {
      throw peerError('PEER_ANSWER');
    };
    for (let i = 0; i < 6; i += 1) await engine.once('list.txt');
    expect(engine.circuit).toBe('closed');
  });

  it('has a failure or an alarm, as the last run was', async () => {
    const { peer, engine } = await mirrored();
    peer.onAsk = () => {
      throw peerError('PEER_ANSWER');
    };
    await engine.once('list.txt');
    peer.onAsk = () => {};
    peer.objects.delete('list.txt');
    const report = await engine.once('list.txt');
    expect([report.alarm?.code, report.failure, report.failures]).toEqual([
      'SHARE_GONE',
      undefined,
      undefined,
    ]);
  });

  it('is written by one run at a time, however many are asked for', async () => {
    const { peer, engine } = await mirrored();
    let now = 0;
    let most = 0;
    peer.onAsk = async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setTimeout(resolve, 5));
      now -= 1;
    };
    await Promise.all([engine.once('list.txt'), engine.once('list.txt'), engine.once('list.txt')]);
    expect(most).toBe(1);
  });
});

interface AlarmCase {
  readonly code: string;
  readonly data: string;
  readonly first: Shared;
  readonly bad: Shared | undefined;
  readonly more?: object;
}

const ALARMS: readonly AlarmCase[] = [
  { code: 'SHARE_GONE', data: 'list.txt', first: LIST, bad: undefined },
  { code: 'SHARE_EMPTY', data: 'list.txt', first: LIST, bad: { type: 'text/plain', content: '' } },
  {
    code: 'SHARE_HTML',
    data: 'list.txt',
    first: LIST,
    bad: { type: 'text/html', content: '<div>Oh no</div>' },
  },
  { code: 'SHARE_HTML', data: 'list.txt', first: LIST, bad: { type: 'text/plain', content: LOGIN } },
  {
    code: 'SHARE_HTML',
    data: 'picture.png',
    first: { type: 'image/png', content: '\x89PNG' },
    bad: { content: ['<!-- proxy -->', '\n<html', '>'] },
  },
  {
    code: 'SHARE_TYPE',
    data: 'list.txt',
    first: LIST,
    bad: { type: 'application/json', content: '{"error":"no such object"}' },
  },
  {
    code: 'SHARE_TYPE',
    data: 'prices.json',
    first: { type: 'application/json', content: '{"a":1}' },
    bad: { type: 'text/plain', content: 'java.lang.Exception: Error in servlet' },
  },
  {
    code: 'SHARE_TYPE',
    data: 'picture.png',
    first: { type: 'image/png', content: '\x89PNG' },
    bad: { type: 'application/octet-stream', content: '<?xml version="1.0"?><Error>AccessDenied</Error>' },
  },
  {
    code: 'SHARE_TYPE',
    data: 'picture.png',
    first: { type: 'image/png', content: '\x89PNG' },
    bad: { type: 'image/png', content: '{"table":"prices","rows":[' },
  },
  {
    code: 'MIRROR_TOO_LARGE',
    data: 'list.txt',
    first: LIST,
    bad: { type: 'text/plain', content: Array.from({ length: 100 }, () => 'x'.repeat(100)) },
    more: { maxSize: '1 KiB' },
  },
];

describe.each(ALARMS)('$code of $data', ({ code, data, first, bad, more }) => {
  const path = `shares/${data}`;
  const put = (peer: FakePeer, shared: Shared | undefined) =>
    shared === undefined ? peer.objects.delete(data) : peer.objects.set(data, shared);

  it('leaves the old file, is told once, and is over when the peer has good data again', async () => {
    const { peer, engine } = await mirrored(data, first, more);
    const [text, mtime] = [engine.read(path), engine.mtime(path)];
    put(peer, bad);
    const raised = await engine.once(data);
    expect(raised).toMatchObject({ alarm: { code }, changed: false });
    const again = await engine.once(data);
    expect(again.alarm).toEqual(raised.alarm);
    expect(again.failure).toBeUndefined();
    expect([engine.read(path), engine.mtime(path)]).toEqual([text, mtime]);
    expect(engine.files()).toEqual([path]);
    expect(engine.said.filter((line) => line.startsWith('warn:'))).toHaveLength(1);
    put(peer, first);
    expect((await engine.once(data)).alarm).toBeUndefined();
    expect(engine.said).toContain(`info: mirror ${data}: the alarm is over`);
    expect(engine.mtime(path)).toBe(mtime);
  });

  it('is over when a person accepts it', async () => {
    const { peer, engine } = await mirrored(data, first, more);
    put(peer, bad);
    await engine.once(data);
    expect(await engine.mirrors.accept(data)).toMatchObject({ changed: true });
    const report = engine.mirrors.status()[0];
    expect(report?.alarm).toBeUndefined();
    if (bad === undefined) expect(engine.files()).toEqual([]);
    else expect(engine.read(path)).toBe([bad.content].flat().join(''));
    // What was accepted is no alarm the next time; only maxSize says always what it says.
    const next = await engine.once(data);
    expect(next.alarm?.code).toBe(code === 'MIRROR_TOO_LARGE' ? code : undefined);
  });
});

describe('accepting', () => {
  it('that an object is gone keeps a version, and waits for the object to come back', async () => {
    const { peer, engine } = await mirrored('list.txt', LIST, { versions: 1 });
    peer.objects.delete('list.txt');
    await engine.once('list.txt');
    await engine.mirrors.accept('list.txt');
    expect(engine.files()).toEqual(['shares/list.txt.1']);
    const waits = await engine.once('list.txt');
    expect(waits).toMatchObject({ changed: false, absentSince: expect.any(Number) });
    expect([waits.alarm, waits.failure]).toEqual([undefined, undefined]);
    peer.objects.set('list.txt', LIST);
    const back = await engine.once('list.txt');
    expect(back).toMatchObject({ changed: true, bytes: 4 });
    expect(back.absentSince).toBeUndefined();
  });

  it('one thing does not accept another', async () => {
    const { peer, engine } = await mirrored();
    peer.objects.set('list.txt', { type: 'text/plain', content: '' });
    await engine.once('list.txt');
    peer.objects.set('list.txt', { type: 'text/html', content: LOGIN });
    expect(await engine.mirrors.accept('list.txt')).toMatchObject({ alarm: { code: 'SHARE_HTML' } });
    expect(engine.read('shares/list.txt')).toBe('one\n');
  });

  it('needs an alarm, and a name that there is', async () => {
    const { engine } = await mirrored();
    await expect(engine.mirrors.accept('list.txt')).rejects.toMatchObject({ code: 'MIRROR_NO_ALARM' });
    await expect(engine.mirrors.accept('lsit.txt')).rejects.toMatchObject({
      code: 'MIRROR_UNKNOWN',
      exitCode: 2,
      message: 'There is no mirror called "lsit.txt"; did you mean "list.txt"?',
    });
  });
});

describe('at the first time', () => {
  it('a page is an alarm for a name that is none, and fine for one that is', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    for (const data of ['data.csv', 'page.html'])
      peer.objects.set(data, { type: 'text/html', content: LOGIN });
    await engine.open({ shares: [{ data: 'data.csv' }, { data: 'page.html' }] });
    expect(await engine.once('data.csv')).toMatchObject({ alarm: { code: 'SHARE_HTML' } });
    expect(await engine.once('page.html')).toMatchObject({ changed: true });
    expect(engine.files()).toEqual(['shares/page.html']);
  });

  it('a text that speaks of errors is fine where a text is expected', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.objects.set('errors.log', { type: 'text/plain', content: 'Error 1\nError 2\n' });
    await engine.open({ shares: [{ data: 'errors.log' }] });
    expect(await engine.once('errors.log')).toMatchObject({ changed: true });
  });
});

it('an answer that breaks in the middle leaves the old file, and nothing beside it', async () => {
  const { peer, engine } = await mirrored();
  const share = peer.share.bind(peer);
  peer.share = (query, use, options) =>
    share(
      query,
      (stream) =>
        use({
          ...stream,
          chunks: (async function* () {
            yield Buffer.alloc(10_000, 'x');
            throw peerError('PEER_ANSWER');
          })(),
        }),
      options,
    );
  expect(await engine.once('list.txt')).toMatchObject({ failure: { code: 'PEER_ANSWER' } });
  expect(engine.files()).toEqual(['shares/list.txt']);
  expect(engine.read('shares/list.txt')).toBe('one\n');
});

it('stopping ends an endless answer at once, and leaves the old file and nothing beside it', async () => {
  const { peer, engine } = await mirrored();
  let sent = 0;
  peer.share = async (_query, use, { signal } = {}) =>
    use({
      type: 'text/plain',
      size: undefined,
      lastModified: undefined,
      chunks: (async function* () {
        for (;;) {
          signal?.throwIfAborted();
          await new Promise((resolve) => setImmediate(resolve));
          sent += 1;
          yield Buffer.alloc(1_000, 'x');
        }
      })(),
    });
  engine.start();
  await until(() => sent > 100, 'the answer is under way');
  expect(engine.mirrors.status()).toMatchObject([{ running: true }]);
  const before = engine.state.meta('mirror/list.txt');
  await engine.stop();
  expect(engine.files()).toEqual(['shares/list.txt']);
  expect(engine.read('shares/list.txt')).toBe('one\n');
  expect((await State.read(engine.stateDir)).meta('mirror/list.txt')).toEqual(before);
});

describe('several shared objects that take long', () => {
  /** A peer whose objects take for ever, but for what a test ends: they say when they are called off. */
  async function slow() {
    const peer = new FakePeer();
    const begun = new Map<string, (error?: Error) => void>();
    const calledOff: string[] = [];
    peer.share = ({ data }, _use, { signal } = {}) =>
      new Promise((resolve, reject) => {
        begun.set(data, (error) => (error === undefined ? resolve(undefined) : reject(error)));
        signal?.addEventListener('abort', () => void calledOff.push(data));
      });
    const engine = new Engine(peer);
    afterwards('test', () => {
      for (const end of begun.values()) end(new Error('the test is over'));
    });
    await engine.open({ shares: ['a', 'b', 'c'].map((data) => ({ data })) });
    const areUnderWay = () => until(() => begun.size === 3, 'all are under way');
    const end = (error?: Error): void => {
      for (const each of begun.values()) each(error);
    };
    return { engine, begun, calledOff, areUnderWay, end };
  }

  it('are all called off at once when everything stops, whoever asked for them', async () => {
    const { engine, calledOff, areUnderWay, end } = await slow();
    engine.start();
    await areUnderWay();
    const stopped = engine.mirrors.stop();
    await until(() => calledOff.length === 3, 'all are called off');
    end(new Error('called off'));
    await stopped;
  });

  it('are all called off at once when nobody waits for them any more', async () => {
    const { engine, begun, calledOff, areUnderWay, end } = await slow();
    const running = engine.mirrors.run(undefined);
    const first = running.next();
    await areUnderWay();
    begun.get('b')?.();
    expect((await first).value).toMatchObject({ name: 'b' });
    const over = running.return();
    await until(() => calledOff.length === 2, 'the others are called off');
    expect(calledOff).toEqual(['a', 'c']);
    end(new Error('called off'));
    await over;
  });

  it('are all called off at once when one ends with what is not its own, such as a disk that fails', async () => {
    const { engine, begun, calledOff, areUnderWay, end } = await slow();
    const running = engine.run();
    await areUnderWay();
    const commit = engine.state.commit.bind(engine.state);
    engine.state.commit = () => Promise.reject(new Error('the disk fails'));
    begun.get('b')?.();
    await until(() => calledOff.length === 2, 'the others are called off');
    engine.state.commit = commit;
    end(new Error('called off'));
    await expect(running).rejects.toThrow('the disk fails');
  });
});

describe('a pattern', () => {
  const names = (engine: Engine) => engine.mirrors.status().map(({ name }) => name);

  it.each(['shares', 'tables'])(
    'does not bring back what a person let go, also where that is still listed (%s)',
    async (kind) => {
      const peer = new FakePeer();
      peer.listed = ['a', 'b'];
      for (const name of peer.listed) {
        peer.objects.set(name, { content: 'object' });
        peer.table(name, { k: { v: '1' } });
      }
      const engine = new Engine(peer);
      const at = (every: string) =>
        kind === 'tables' ? { tables: [{ table: '*', every }] } : { shares: [{ data: '*', every }] };
      await engine.open(at('1h'));
      await engine.run();
      peer.objects.delete('a');
      peer.tableRows.delete('a');
      await engine.once('a');
      expect(await engine.mirrors.accept('a')).toMatchObject({ isOver: true, changed: true });
      expect(names(engine)).toEqual(['*', 'b']);
      await engine.configure(at('2h'));
      expect(names(engine)).toEqual(['*', 'b']);
    },
  );

  it('runs no mirror again that ended while that run waited', async () => {
    const peer = new FakePeer();
    peer.listed = ['a', 'b'];
    for (const name of peer.listed) peer.objects.set(name, { content: 'object' });
    const engine = new Engine(peer);
    await engine.open({ shares: [{ data: '*' }] });
    await engine.run();
    peer.objects.delete('a');
    await engine.once('a');
    await engine.open({ shares: [{ data: '*' }] });
    const accepted = engine.mirrors.accept('a');
    await expect(engine.once('a')).rejects.toMatchObject({ code: 'MIRROR_REPLACED' });
    expect(await accepted).toMatchObject({ isOver: true });
    expect(names(engine)).toEqual(['*', 'b']);
  });

  it('forgets an object that went before it was ever read', async () => {
    const peer = new FakePeer();
    peer.listed = ['a', 'b'];
    peer.objects.set('b', { content: 'object' });
    const engine = new Engine(peer);
    await engine.open({ shares: [{ data: '*' }] });
    expect(await engine.run()).toContainEqual(
      expect.objectContaining({ name: 'a', failure: expect.objectContaining({ code: 'MIRROR_NOTHING' }) }),
    );
    peer.listed = ['b'];
    expect(await engine.run()).toContainEqual(expect.objectContaining({ name: 'a', isOver: true }));
    expect(names(engine)).toEqual(['*', 'b']);
  });
});
