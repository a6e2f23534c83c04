import { rmSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DiskWithFaults } from '../fault/state-disk.js';
import { pendingRecord } from '../state/records.js';
import { PageAtWork } from './page-at-work.js';

describe('GET /healthz', () => {
  it('says that the daemon lives', async () => {
    const page = await PageAtWork.start();
    const answer = await page.fetch('/healthz');
    expect([answer.status, await answer.json()]).toMatchObject([200, { alive: true, reasons: [] }]);
  });

  it('says what stands still', async () => {
    const page = await PageAtWork.start();
    page.stuck = [{ name: 'push', what: 'what is due is not pushed', since: 0 }];
    const answer = await page.fetch('/healthz');
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { alive: false, reasons: [{ code: 'STUCK', message: 'It stands still: what is due is not pushed.' }] },
    ]);
  });
});

describe('GET /readyz', () => {
  async function reasons(page: PageAtWork): Promise<string[]> {
    const answer = await page.fetch('/readyz');
    const body = (await answer.json()) as {
      ready: boolean;
      reasons: { code: string; message: string; hint: string }[];
    };
    expect([answer.status, body.ready]).toEqual(body.reasons.length === 0 ? [200, true] : [503, false]);
    for (const { message, hint } of body.reasons)
      expect([message, hint]).toEqual([expect.stringMatching(/\.$/), expect.stringMatching(/\.$/)]);
    return body.reasons.map(({ code, message }) => `${code}: ${message}`);
  }

  it('is ready when nothing keeps files from becoming searchable', async () => {
    const page = await PageAtWork.start();
    expect(await reasons(page)).toEqual([]);
    page.queue = { ...page.queue, paused: { since: 0 } };
    expect(await reasons(page)).toEqual([]);
  });

  it('says that the peer is in trouble, or was never heard of', async () => {
    const page = await PageAtWork.start();
    const reason = { kind: 'unreachable', message: 'It refused the connection', hint: 'Start it.' } as const;
    page.queue = {
      ...page.queue,
      circuit: { state: 'half-open', since: 0, reason, held: ['push'], tries: 3 },
    };
    expect(await reasons(page)).toEqual(['PEER: The peer does not answer: It refused the connection.']);
    page.queue = { ...page.queue, circuit: { state: 'closed', since: 0, held: [], tries: 0 } };
    page.isDialectKnown = false;
    expect(await reasons(page)).toEqual(['PEER: The peer has not answered yet since peersync started.']);
  });

  it('names the folders that are held', async () => {
    const page = await PageAtWork.start();
    page.folders = page.folders.map((folder) =>
      folder.name === 'notes'
        ? {
            ...folder,
            state: 'held',
            trouble: { code: 'MISSING', message: 'It is gone.', hint: 'Bring it back.' },
          }
        : { ...folder, state: 'degraded' },
    );
    expect(await reasons(page)).toEqual(['FOLDER_HELD: The folder notes is held: It is gone.']);
  });

  it('says that the state cannot be written, and when it can again', async () => {
    const disk = new DiskWithFaults();
    const page = await PageAtWork.start({ open: disk.open });
    disk.space = 0;
    page.state.put(pendingRecord('a.md'));
    await expect(page.state.commit()).rejects.toThrow();
    expect((await reasons(page))[0]).toMatch(/^STATE_FULL: The state in .* cannot grow/);
    disk.space = Number.POSITIVE_INFINITY;
    await page.state.commit();
    expect(await reasons(page)).toEqual([]);
  });

  it('says at once that a disk does not answer, and does not ask it', async () => {
    const page = await PageAtWork.start();
    rmSync(page.config.state.dir, { recursive: true });
    page.diskTrouble = {
      ...{ code: 'DISK_SILENT', path: '/srv/state', since: 0 },
      message: 'The disk of /srv/state does not answer: what is known is not brought to the disk.',
      hint: 'Nothing is lost.',
    };
    expect(await reasons(page)).toEqual([
      'DISK_SILENT: The disk of /srv/state does not answer: what is known is not brought to the disk.',
    ]);
  });

  it('says that the directory of the state is gone', async () => {
    const page = await PageAtWork.start();
    rmSync(page.config.state.dir, { recursive: true });
    expect((await reasons(page))[0]).toMatch(/^STATE_UNWRITABLE: /);
  });
});
