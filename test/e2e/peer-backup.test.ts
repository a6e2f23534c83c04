import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.js';
import { silentLogger } from '../../src/lib/logger.js';
import { State } from '../../src/state/state.js';
import { peersync, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** Pushes documents one after another until `signal` aborts or the peer is gone. */
async function pushSome(peer: PeerProcess, accepted: string[], signal: AbortSignal): Promise<void> {
  const password = readFileSync(join(peer.data, 'admin-password'), 'utf8').trim();
  const authorization = `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`;
  for (let n = 0; !signal.aborted; n += 1) {
    const url = `http://h/${n}`;
    const data = `document number${n} ${'some words of it '.repeat(2_000)}`;
    const body = new URLSearchParams({ 'url-0': url, 'data-0': data });
    const answer = await fetch(`${peer.url}/api/push_p.json`, {
      method: 'POST',
      headers: { authorization },
      body,
    }).catch(() => undefined);
    if (answer?.ok !== true) return;
    accepted.push(url);
  }
}

/** The unfinished backups in a directory. */
function unfinished(dir: string): readonly string[] {
  return readdirSync(dir).filter((name) => name.endsWith('.partial'));
}

async function checked(file: string): Promise<{ documents: number; sharedObjects: number }> {
  const { code, stdout } = await peersync(['peer', 'check', file, '--json']);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    expect.objectContaining({ agrees: true, found: 0 }),
  ]);
  return JSON.parse(stdout) as { documents: number; sharedObjects: number };
}

describe('peersync peer backup, restore and check', () => {
  it('save a peer that runs, and bring it back', async () => {
    const [data, files] = [temporaryDirectory(), temporaryDirectory()];
    const peer = await PeerProcess.start(data);
    const [accepted, ending] = [[] as string[], new AbortController()];
    const pushing = pushSome(peer, accepted, ending.signal);
    await until(() => accepted.length > 5, 'some are accepted');
    writeFileSync(join(data, 'shares', 'object.txt'), 'shared');
    const before = accepted.length;
    const file = join(files, 'peer.backup');
    const saved = await peersync(['peer', 'backup', file, '--data', data]);
    ending.abort();
    await pushing;
    expect(saved).toMatchObject({ code: 0, stderr: '' });
    expect(saved.stdout).toMatch(/^Saved \d+ documents, 0 tables, 1 shared object in .*agree\.$/m);
    expect((await checked(file)).documents).toBeGreaterThanOrEqual(before);
    const again = await peersync(['peer', 'backup', file, '--data', data]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('--force')]);
    const running = await peersync(['peer', 'restore', file, '--data', data]);
    expect([running.code, running.stderr]).toEqual([1, expect.stringContaining('Stop it')]);
    await peer.running.kill('SIGTERM');
    const restored = await peersync(['peer', 'restore', file, '--data', data]);
    expect(restored).toMatchObject({ code: 0, stderr: '' });
    expect(restored.stdout).toContain('compares all documents with it');
    expect(restored.stdout).toContain(join(data, 'before-restore'));
    const back = await PeerProcess.start(data);
    for (const url of accepted.slice(0, before)) expect(await back.peerdoc(url)).toBeDefined();
    await back.running.kill('SIGTERM');
  });

  it('make the daemon compare all documents with a peer that was restored or that lost its database', async () => {
    const dir = temporaryDirectory();
    const data = join(dir, 'peer');
    const peer = { url: 'embedded', embedded: { dir: data, port: 0 } };
    const config = writeConfig(dir, { peer });
    const inThePeer = async () => {
      const { stdout } = await peersync(['peer', 'check', '-c', config, '--json']);
      return JSON.parse(stdout) as object;
    };
    const isOnce = async () => {
      const { code, stdout } = await peersync(['once', '-c', config]);
      expect([code, stdout]).toEqual([0, expect.stringContaining('2 confirmed')]);
      expect(await inThePeer()).toMatchObject({ documents: 2 });
    };
    writeFileSync(join(dir, 'inbox/a.txt'), 'before the backup');
    expect(await peersync(['once', '-c', config])).toMatchObject({ code: 0 });
    const file = join(dir, 'peer.backup');
    expect(await peersync(['peer', 'backup', file, '-c', config])).toMatchObject({ code: 0 });
    writeFileSync(join(dir, 'inbox/b.txt'), 'after the backup');
    await isOnce();

    expect(await peersync(['peer', 'restore', file, '-c', config])).toMatchObject({ code: 0 });
    expect(await inThePeer()).toMatchObject({ documents: 1 });
    await isOnce();
    renameSync(join(data, 'peer.sqlite'), join(dir, 'peer.sqlite.old'));
    await isOnce();
    // The state of an earlier release does not know the database.
    const state = await State.open(join(dir, 'state'), {
      clock: systemClock,
      log: silentLogger,
    });
    state.setMeta('embeddedDatabase', undefined);
    await state.close();
    renameSync(join(data, 'peer.sqlite'), join(dir, 'peer.sqlite.older'));
    await isOnce();
  });

  it('find the peer of the configuration, and say so if there is none', async () => {
    const dir = temporaryDirectory();
    const config = writeConfig(dir, { peer: { url: 'http://127.0.0.1:9' } });
    const file = join(dir, 'peer.backup');
    const other = await peersync(['peer', 'backup', file, '-c', config]);
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining('--data')]);
    const missing = await peersync(['peer', 'check', '--data', join(dir, 'missing')]);
    expect(missing.stderr).toContain('There is no embedded peer in');
    expect(existsSync(join(dir, 'missing'))).toBe(false);
  });

  it('leave a good peer and no half backup when either is killed', async () => {
    const [data, files] = [temporaryDirectory(), temporaryDirectory()];
    for (const killed of ['command', 'peer'] as const) {
      const peer = await PeerProcess.start(data);
      const [accepted, ending] = [[] as string[], new AbortController()];
      const pushing = pushSome(peer, accepted, ending.signal);
      await until(() => accepted.length > 20, 'some are accepted');
      const file = join(files, `${killed}.backup`);
      const command = new Running(['peer', 'backup', file, '--data', data]);
      let isOver = false;
      void command.ended.then(() => {
        isOver = true;
      });
      await until(() => isOver || unfinished(files).length > 0, 'the copy has begun');
      (killed === 'command' ? command : peer.running).child.kill('SIGKILL');
      const { code, stderr } = await command.ended;
      if (code === 0) await checked(file);
      else expect(existsSync(file)).toBe(false);
      if (killed === 'peer' && code !== 0) expect(stderr).toContain('Run the command again.');
      ending.abort();
      await pushing;
      peer.running.child.kill('SIGKILL');
      await peer.running.ended;
      const { stdout } = await peersync(['peer', 'check', '--data', data, '--json']);
      expect(JSON.parse(stdout)).toMatchObject({ agrees: true });
      const left = unfinished(files);
      await peersync(['peer', 'backup', file, '--data', data, '--force']);
      expect((await checked(file)).documents).toBeGreaterThanOrEqual(accepted.length);
      expect(unfinished(files)).toEqual(left);
      for (const name of left) rmSync(join(files, name));
    }
  });
});
