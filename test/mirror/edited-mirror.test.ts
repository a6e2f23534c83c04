import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { until } from '../support/wait.js';
import { Engine, FakePeer } from './engine.js';

/** Whatever is saved now was saved a while ago. */
const A_MINUTE_LATER = { ...systemClock, wall: () => Date.now() + 60_000 };
const FILE = 'tables/fruit.csv';

async function edited(more: object = {}) {
  const peer = new FakePeer();
  const engine = new Engine(peer, A_MINUTE_LATER);
  peer.table('fruit', { k1: { name: 'Apple' }, k2: { name: 'Pear' } });
  await engine.open({ tables: [{ table: 'fruit', edit: true, ...more }] });
  await engine.once('fruit');
  return { peer, engine, edit: (text: string) => engine.write(FILE, text) };
}

describe('an edited table', () => {
  it('is written like any, and what a person changes reaches the peer', async () => {
    const { peer, engine, edit } = await edited();
    expect(engine.read(FILE)).toBe('pk,name\r\nk1,Apple\r\nk2,Pear\r\n');
    edit('pk,name\r\nk1,Quince\r\nk2,Pear\r\n');
    expect(await engine.once('fruit')).toMatchObject({ rows: 2 });
    expect(peer.tableRows.get('fruit')?.get('k1')).toEqual({ name: 'Quince' });
    expect(peer.asked.filter((what) => what.startsWith('set'))).toEqual(['set fruit k1']);
    expect(engine.said.join()).not.toContain('put back');
  });

  it('may lose all its rows by the hand of a person without an alarm', async () => {
    const { peer, engine, edit } = await edited({ deletes: true });
    edit('pk,name\r\n');
    const report = await engine.once('fruit');
    expect(report.alarm).toBeUndefined();
    expect(report.rows).toBe(0);
    expect(peer.tableRows.get('fruit')?.size).toBe(0);
    expect((await engine.once('fruit')).alarm).toBeUndefined();
  });

  it('that loses rows in the peer raises the alarm of any table, and a person accepts it', async () => {
    const { peer, engine } = await edited();
    peer.table('fruit', {});
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'TABLE_EMPTY' } });
    expect(engine.read(FILE)).toContain('Apple');
    expect(await engine.mirrors.accept('fruit')).toMatchObject({ rows: 0 });
    expect(engine.read(FILE)).toBe('pk,name\r\n');
  });

  it('that is gone loses its file when a person accepts that, and comes back', async () => {
    const { peer, engine } = await edited();
    peer.tableRows.delete('fruit');
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'TABLE_GONE' } });
    expect(engine.has(FILE)).toBe(true);
    expect(await engine.mirrors.accept('fruit')).toMatchObject({ changed: true });
    expect(engine.has(FILE)).toBe(false);
    expect((await engine.once('fruit')).alarm).toBeUndefined();
    peer.table('fruit', { k1: { name: 'Apple' } });
    await engine.once('fruit');
    expect(engine.read(FILE)).toBe('pk,name\r\nk1,Apple\r\n');
  });

  it('that is gone changes nothing where a person had removed its file as well', async () => {
    const { peer, engine } = await edited();
    peer.tableRows.delete('fruit');
    await engine.once('fruit');
    rmSync(join(engine.root, FILE));
    expect(await engine.mirrors.accept('fruit')).toMatchObject({
      changed: false,
      absentSince: expect.any(Number),
    });
  });

  it('deletes no more rows than allowed until a person accepts that', async () => {
    const { peer, engine, edit } = await edited({ deletes: true, maxDeletes: 1 });
    edit('pk,name\r\n');
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'EDIT_DELETES' }, changed: false });
    expect(peer.tableRows.get('fruit')?.size).toBe(2);
    expect(engine.mirrors.status()[0]?.alarm?.code).toBe('EDIT_DELETES');
    const accepted = await engine.mirrors.accept('fruit');
    expect(accepted.alarm).toBeUndefined();
    expect(peer.tableRows.get('fruit')?.size).toBe(0);
  });

  it('shows what clashed', async () => {
    const { peer, engine, edit } = await edited();
    edit('pk,name\r\nk1,Quince\r\nk2,Pear\r\n');
    peer.table('fruit', { k1: { name: 'Banana' }, k2: { name: 'Pear' } });
    const report = await engine.once('fruit');
    expect(report.conflicts).toMatchObject([{ pk: 'k1', column: 'name' }]);
    expect(engine.read(FILE)).toContain('Banana');
    expect(engine.said.join()).not.toContain('put back');
    expect(engine.read(report.conflicts?.[0]?.file ?? '')).toContain('Quince');
    const logged = () => engine.said.filter((line) => line.includes('changed on both sides'));
    expect(logged()).toEqual([expect.stringContaining(report.conflicts?.[0]?.file ?? '')]);
    await engine.once('fruit');
    expect(logged()).toHaveLength(1);
  });

  it('is not emptied where the peer shows nothing any more right after a row was committed', async () => {
    const { peer, engine, edit } = await edited();
    const mine = 'pk,name\r\nk1,Quince\r\nk2,Pear\r\n';
    edit(mine);
    peer.onAsk = (what) => {
      if (what.startsWith('table') && peer.asked.includes('set fruit k1')) peer.table('fruit', {});
    };
    expect(await engine.once('fruit')).toMatchObject({ alarm: { code: 'TABLE_EMPTY' } });
    expect(engine.read(FILE)).toBe(mine);
  });

  it('may be stopped in the middle of a run, which has ended then', async () => {
    const { peer, engine, edit } = await edited();
    edit('pk,name\r\nk1,Quince\r\nk2,Pear\r\n');
    let goOn = (): void => {};
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    peer.onAsk = (what) => (what.startsWith('set') ? waiting : undefined);
    const run = engine.once('fruit').catch(() => undefined);
    await until(() => peer.asked.includes('set fruit k1'), 'the run commits');
    setImmediate(() => setImmediate(goOn));
    await engine.mirrors.stop();
    expect(engine.mirrors.status()[0]?.running).toBe(false);
    await run;
  });

  it.each(['is written over', 'is removed'])(
    'saves what did not reach the peer when `edit` is switched off and the file %s',
    async (how) => {
      const { peer, engine, edit } = await edited();
      edit('pk,name\r\nk1,Quince\r\nk2,Pear\r\n');
      await engine.configure({ tables: [{ table: 'fruit' }] });
      if (how === 'is removed') {
        peer.tableRows.delete('fruit');
        await engine.once('fruit');
        await engine.mirrors.accept('fruit');
        expect(engine.has(FILE)).toBe(false);
      } else {
        await engine.once('fruit');
        expect(engine.read(FILE)).toContain('Apple');
      }
      expect(peer.asked.join()).not.toContain('set');
      const [conflict, ...others] = engine.mirrors.status()[0]?.conflicts ?? [];
      expect(others).toEqual([]);
      expect(engine.read(conflict?.file ?? '')).toContain('Quince');
      expect(engine.said.join()).toContain(conflict?.file);
      peer.table('fruit', { k1: { name: 'Banana' } });
      await engine.once('fruit');
      rmSync(join(engine.root, conflict?.file ?? ''));
      edit('pk,name\r\nk1,a word\r\n');
      expect((await engine.once('fruit')).conflicts ?? []).toEqual([]);
      expect(engine.files()).toEqual([FILE]);
    },
  );

  it('saves nothing when `edit` is switched off and all of it is with the peer', async () => {
    const { engine } = await edited();
    await engine.configure({ tables: [{ table: 'fruit' }] });
    expect((await engine.once('fruit')).conflicts ?? []).toEqual([]);
    expect(engine.files()).toEqual([FILE]);
  });

  it('is noticed soon after a person saved it', async () => {
    const { peer, engine, edit } = await edited({ every: '1d' });
    engine.start();
    await until(() => peer.asked.length >= 2, 'the first run after the start');
    edit('pk,name\r\nk1,Quince\r\nk2,Pear\r\n');
    await until(() => peer.asked.includes('set fruit k1'), 'the edit reached the peer');
  });
});
