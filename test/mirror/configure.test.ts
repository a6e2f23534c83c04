import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { Engine, FakePeer, filesBelow } from './engine.js';

function peerWithThree(): FakePeer {
  const peer = new FakePeer();
  for (const name of ['a', 'b', 'c']) peer.objects.set(name, { content: `object ${name}` });
  peer.table('prices-eu', { apple: { price: '1' } });
  peer.table('prices-us', { apple: { price: '2' } });
  return peer;
}

/** Answers nothing to this question before it is told to. */
function held(peer: FakePeer, what: string): () => void {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  peer.onAsk = async (asked) => {
    if (asked === what) await released;
  };
  return release;
}

const names = (engine: Engine) => engine.mirrors.status().map(({ name }) => name);
const count = (peer: FakePeer, what: string) => peer.asked.filter((each) => each === what).length;

describe('mirrors whose configuration changes while they run', () => {
  it('are added, changed and removed; those that are as before keep their turn', async () => {
    const peer = peerWithThree();
    const engine = new Engine(peer);
    await engine.open({ shares: [{ data: 'a' }, { data: 'b', every: '1h' }] });
    engine.start();
    await until(() => engine.has('shares/a') && engine.has('shares/b'), 'both are there');
    const nextAt = () => engine.mirrors.status().find(({ name }) => name === 'a')?.nextAt;
    await until(() => nextAt() !== undefined, 'the next turn is planned');
    const before = nextAt();
    await engine.configure({
      shares: [{ data: 'a' }, { data: 'b', every: '1h', path: 'moved/b' }, { data: 'c' }],
    });
    await until(
      () => engine.has('moved/b') && engine.has('shares/c'),
      'the changed and the new one are there',
    );
    expect(nextAt()).toBe(before);
    expect(count(peer, 'share a')).toBe(1);
    await engine.configure({ shares: [{ data: 'c' }] });
    expect(names(engine)).toEqual(['c']);
    expect(engine.said.filter((line) => line.includes('not configured any more'))).toHaveLength(2);
    expect(engine.read('shares/a')).toBe('object a');
    await engine.configure({ shares: [{ data: 'a' }, { data: 'c' }] });
    await until(() => count(peer, 'share a') === 2, 'it runs again');
  });

  it('leave nothing behind of a list that is being taken meanwhile', async () => {
    const peer = peerWithThree();
    for (let n = 0; n < 3_000; n += 1) peer.table(`t${n}`, {});
    const engine = new Engine(peer);
    await engine.open({ tables: [{ table: 't*', every: '1d' }] });
    const run = engine.run('t*').catch(() => []);
    while (engine.mirrors.names.length === 1) await nextTurn();
    expect(engine.mirrors.names.length).toBeLessThan(3_000);
    await engine.configure({ shares: [{ data: 'a' }] });
    await run;
    expect(names(engine)).toEqual(['a']);
  });

  it('go on with a run under way where they are as before', async () => {
    const peer = peerWithThree();
    const release = held(peer, 'share a');
    const engine = new Engine(peer);
    await engine.open({ shares: [{ data: 'a' }] });
    engine.start();
    await until(() => count(peer, 'share a') === 1, 'it is under way');
    await engine.configure({ shares: [{ data: 'a' }, { data: 'b' }] });
    await until(() => engine.has('shares/b'), 'the new one ran meanwhile');
    release();
    await until(() => engine.has('shares/a'), 'it ended');
    expect(count(peer, 'share a')).toBe(1);
  });

  it.each(['changed', 'removed'])(
    'call a run off of one that is %s, and write nothing at its old place',
    async (how) => {
      const peer = peerWithThree();
      const release = held(peer, 'share a');
      const engine = new Engine(peer);
      await engine.open({ shares: [{ data: 'a' }] });
      engine.start();
      const run = engine.once('a').catch((error: unknown) => error);
      await until(() => count(peer, 'share a') >= 1, 'it is under way');
      const configured = engine.configure({
        shares: how === 'changed' ? [{ data: 'a', path: 'new/a' }] : [],
      });
      release();
      await configured;
      expect(await run).toMatchObject({ code: 'MIRROR_REPLACED' });
      if (how === 'changed') await until(() => engine.has('new/a'), 'the new one ran');
      expect(engine.has('shares/a')).toBe(false);
      expect(engine.failure).toBeUndefined();
      expect(filesBelow(engine.root)).toEqual(how === 'changed' ? ['new/a'] : []);
    },
  );

  it('take the members of a pattern with it', async () => {
    const peer = peerWithThree();
    const engine = new Engine(peer);
    await engine.open({ tables: [{ table: 'prices-*' }] });
    engine.start();
    await until(
      () => engine.has('tables/prices-us.csv') && engine.has('tables/prices-eu.csv'),
      'all are there',
    );
    await engine.configure({ tables: [{ table: 'prices-*', format: 'json' }] });
    await until(
      () => engine.has('tables/prices-us.json') && engine.has('tables/prices-eu.json'),
      'in another form',
    );
    expect(names(engine)).toEqual(['prices-*', 'prices-eu', 'prices-us']);
    await engine.configure({ tables: [{ table: 'prices-eu' }] });
    expect(names(engine)).toEqual(['prices-eu']);
    await until(() => engine.mirrors.status()[0]?.path === 'tables/prices-eu.csv', 'it is one by itself');
  });

  it('move to another root all together', async () => {
    const peer = peerWithThree();
    const engine = new Engine(peer);
    const settings = { shares: [{ data: 'a' }], tables: [{ table: 'prices-eu', edit: true }] };
    await engine.open(settings);
    engine.start();
    await until(() => engine.has('shares/a') && engine.has('tables/prices-eu.csv'), 'both are there');
    const other = join(temporaryDirectory(), 'other');
    mkdirSync(other);
    await engine.configure(settings, other);
    const both = ['shares/a', 'tables/prices-eu.csv'];
    await until(() => both.every((file) => filesBelow(other).includes(file)), 'both are there as well');
    expect([...(peer.tableRows.get('prices-eu')?.keys() ?? [])]).toEqual(['apple']);
    expect(peer.asked.filter((each) => /^(set|delete) /.test(each))).toEqual([]);
  });

  it('can be told so before they were started, and while they start', async () => {
    const engine = new Engine(peerWithThree());
    await engine.open({ shares: [{ data: 'a' }] });
    await engine.configure({ shares: [{ data: 'b' }] });
    expect((await engine.run()).map(({ name }) => name)).toEqual(['b']);
    engine.start();
    await engine.configure({ shares: [{ data: 'c' }] });
    await until(() => engine.has('shares/c'), 'it runs');
    expect(engine.has('shares/a')).toBe(false);
  });
});
