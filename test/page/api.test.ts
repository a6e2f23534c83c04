import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ItemLine, ItemsPage } from '../../src/page/api.js';
import { itemsPage } from '../../src/report/items.js';
import { quarantined } from '../../src/state/entry.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { PageAtWork } from './page-at-work.js';

const TROUBLE = { code: 'PEER_REFUSED', message: 'The peer refused it.', hint: 'Mend it.' };

function quarantine(page: PageAtWork, path: string, folder = 'inbox'): void {
  const item = pendingRecord(path, folder);
  page.state.put(quarantined(item, item, item.version, TROUBLE, 1_700_000_000_000));
}

/** Every page of a question, followed to its end. */
async function leaf(page: PageAtWork, query: string, meanwhile = () => {}): Promise<ItemLine[]> {
  const items: ItemLine[] = [];
  for (let after = ''; ; ) {
    const got = (await page.json(`/api/items?${query}${after}`)) as ItemsPage;
    items.push(...got.items);
    if (got.next === undefined) return items;
    after = `&after=${encodeURIComponent(got.next)}`;
    meanwhile();
  }
}

describe('GET /api/status', () => {
  it('is what the command says', async () => {
    const page = await PageAtWork.start();
    page.state.put(pendingRecord('a.md'));
    expect(await page.json('/api/status')).toMatchObject({
      running: true,
      items: { pending: 1 },
      folders: [{ name: 'inbox', items: { pending: 1 } }, { name: 'notes' }],
    });
  });
});

describe('GET /api/items', () => {
  it('gives every file once, in pages of any size', async () => {
    const page = await PageAtWork.start();
    const paths = Array.from({ length: 23 }, (_, i) => `d${i % 3}/${i}.md`);
    for (const path of paths) for (const entry of lifeOf(pendingRecord(path))) page.state.put(entry);
    for (const folder of ['inbox', 'notes']) quarantine(page, 'bad.md', folder);
    for (const limit of [1, 5, 23, 25, 500]) {
      const all = await leaf(page, `limit=${limit}`);
      expect(all.map(({ folder, path }) => `${folder}/${path}`).sort()).toEqual(
        [...paths, 'bad.md']
          .map((path) => `inbox/${path}`)
          .concat('notes/bad.md')
          .sort(),
      );
    }
    expect(await leaf(page, 'limit=4&status=confirmed')).toHaveLength(23);
    expect(await leaf(page, 'limit=4&folder=notes')).toHaveLength(1);
    expect(await leaf(page, 'limit=4&folder=notes&status=confirmed')).toEqual([]);
  });

  it('gives those whose path holds a name, in whichever case, page by page', async () => {
    const page = await PageAtWork.start();
    for (const path of ['Plans/a.md', 'plan-b.md', 'c.md', 'sub/PLAN-d.md']) quarantine(page, path);
    const found = await leaf(page, 'status=quarantined&name=pLaN&limit=1');
    expect(found.map(({ path }) => path).sort()).toEqual(['Plans/a.md', 'plan-b.md', 'sub/PLAN-d.md']);
    expect(await leaf(page, 'name=nowhere')).toEqual([]);
  });

  it('says of each what a person needs to know of it', async () => {
    const page = await PageAtWork.start();
    quarantine(page, 'sub/bad.md');
    expect(await leaf(page, 'status=quarantined')).toEqual([
      {
        folder: 'inbox',
        path: 'sub/bad.md',
        file: join(page.directory, 'inbox/sub/bad.md'),
        status: 'quarantined',
        since: 1_700_000_000_000,
        size: 2048,
        sha256: expect.any(String),
        url: 'https://files.example.org/inbox/sub/bad.md',
        attempts: expect.any(Number),
        ...TROUBLE,
      },
    ]);
  });

  it('leaves no file out where files leave the list between two pages', async () => {
    const page = await PageAtWork.start();
    for (let i = 0; i < 10; i += 1) quarantine(page, `${i}.md`);
    let retried = 0;
    const met = await leaf(page, 'status=quarantined&limit=3', () => {
      for (let i = 0; i < 3 && retried < 6; i += 1, retried += 1)
        page.state.put(pendingRecord(`${retried}.md`));
    });
    expect(new Set(met.map(({ path }) => path)).size).toBe(10);
  });

  it('begins at the beginning for a mark that is none', async () => {
    const page = await PageAtWork.start();
    quarantine(page, 'a.md');
    for (const mark of ['x', 'W10', 'bnVsbA', Buffer.from('["inbox","gone.md"]').toString('base64url')])
      expect(await leaf(page, `after=${mark}`)).toHaveLength(1);
  });

  describe('among very many files', () => {
    /** Calls `onTurn` each time the event loop turns, until the work is over; resolves with how often it did. */
    async function turnsOf(work: Promise<unknown>, onTurn: (turn: number) => void = () => {}) {
      let isOver = false;
      void work.finally(() => {
        isOver = true;
      });
      for (let turns = 1; ; turns += 1) {
        await new Promise((resolve) => setImmediate(resolve));
        if (isOver) return turns;
        onTurn(turns);
      }
    }

    async function crowded(): Promise<PageAtWork> {
      const page = await PageAtWork.start();
      for (let i = 0; i < 50_000; i += 1)
        page.state.put({ ...pendingRecord('x', 'inbox', 'x'), path: String(i) });
      for (const path of ['one.md', 'two.md'])
        for (const entry of lifeOf(pendingRecord(path))) page.state.put(entry);
      return page;
    }

    it('never holds the process up for long', async () => {
      const page = await crowded();
      const asked = itemsPage(page.config, page.state.entries, { status: 'confirmed', limit: 5 });
      expect(await turnsOf(asked)).toBeGreaterThan(20);
      expect((await asked).items.map(({ path }) => path)).toEqual(['one.md', 'two.md']);
    });

    it('does not look for what is not there', async () => {
      const page = await crowded();
      const asked = itemsPage(page.config, page.state.entries, { status: 'gone', limit: 5 });
      expect(await turnsOf(asked)).toBe(1);
      expect(await asked).toEqual({ items: [] });
    });

    it('leaves out none that was there, where others change meanwhile', async () => {
      const page = await crowded();
      // One enters the list before the end of it, and one that was met leaves it.
      for (const entry of lifeOf(pendingRecord('5'))) page.state.put(entry);
      const asked = itemsPage(page.config, page.state.entries, { status: 'confirmed', limit: 9 });
      await turnsOf(asked, (turn) => {
        if (turn === 2) page.state.put(pendingRecord('5'));
        if (turn === 3) for (const entry of lifeOf(pendingRecord('49000'))) page.state.put(entry);
      });
      expect((await asked).items.map(({ path }) => path)).toEqual(['5', '49000', 'one.md', 'two.md']);
    });
  });

  it.each(['status=nonsense', 'limit=0', 'limit=501', 'limit=1.5', 'limit=x', 'status=gone&status=gone'])(
    'refuses %s',
    async (query) => {
      const page = await PageAtWork.start();
      const answer = await page.fetch(`/api/items?${query}`);
      expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'BAD_REQUEST' } }]);
    },
  );

  it('names the folders where one is not known', async () => {
    const page = await PageAtWork.start();
    const answer = await page.fetch('/api/items?folder=nonsense');
    expect([answer.status, await answer.json()]).toMatchObject([404, { error: { code: 'UNKNOWN_FOLDER' } }]);
  });
});

describe('GET /api/why', () => {
  it('explains a file by its path, and by the name that lists give it', async () => {
    const page = await PageAtWork.start();
    quarantine(page, 'a b.md');
    const file = page.file('inbox/a b.md');
    const report = { verdict: 'quarantined', folder: 'inbox', path: 'a b.md', file };
    expect(await page.json(`/api/why?path=${encodeURIComponent(file)}`)).toMatchObject(report);
    expect(await page.json('/api/why?path=inbox/a%20b.md')).toMatchObject(report);
  });

  it('says the same of everything outside, whether it is there or not', async () => {
    const page = await PageAtWork.start();
    const there = page.file('outside.md');
    const bodies = await Promise.all(
      [
        there,
        `${there}.not`,
        '/etc/passwd',
        '/etc/nothing',
        `${page.directory}/inbox/../outside.md`,
        '/',
      ].map(async (path) => {
        const { file, ...rest } = (await page.json(`/api/why?path=${encodeURIComponent(path)}`)) as {
          file: string;
        };
        return rest;
      }),
    );
    expect(bodies[0]).toMatchObject({ verdict: 'outside' });
    for (const body of bodies) expect(body).toEqual(bodies[0]);
  });

  it('says nothing of what a link in a folder leads to outside of it', async () => {
    const page = await PageAtWork.start();
    mkdirSync(join(page.directory, 'secret'));
    writeFileSync(join(page.directory, 'secret/there.md'), 'x');
    symlinkSync(join(page.directory, 'secret'), join(page.directory, 'inbox/link'));
    const [there, absent] = await Promise.all(
      ['there.md', 'absent.md', 'there.md/below'].map(async (name) => {
        const { file, ...rest } = (await page.json(`/api/why?path=inbox/link/${name}`)) as { file: string };
        return rest;
      }),
    );
    expect(there).toMatchObject({ verdict: 'outside' });
    expect(absent).toEqual(there);
  });

  it.each(['', 'relative.md', 'elsewhere/a.md', '/a%00b'])('refuses "%s"', async (path) => {
    const page = await PageAtWork.start();
    expect((await page.fetch(`/api/why?path=${path}`)).status).toBe(400);
  });
});

describe('POST /api', () => {
  it('retry gives all another try, or what is named', async () => {
    const page = await PageAtWork.start();
    for (const path of ['a.md', 'sub/b.md', 'sub/c.md', 'd.md']) quarantine(page, path);
    const retry = async (body: object) => (await page.post('/api/retry', body)).json();
    expect(await retry({ paths: [join(page.directory, 'inbox/a.md')] })).toEqual({ retried: 1, lookedAt: 0 });
    expect(await retry({ paths: ['inbox/sub'] })).toEqual({ retried: 2, lookedAt: 0 });
    expect(page.state.get('inbox', 'sub/c.md')?.status).toBe('pending');
    expect(page.state.figures().unsaved).toBe(0);
    expect(await retry({ all: true })).toMatchObject({ retried: 4 });
    expect(page.asked).toContain('try');
  });

  it.each([
    ...['{}', '{"all":false}', '{"paths":[]}', '{"paths":"x"}', '{"paths":[1]}', '{"paths":["x"]}'],
    ...['[]', '"x"', 'null'],
  ])('retry refuses %s', async (body) => {
    const page = await PageAtWork.start();
    quarantine(page, 'a.md');
    expect((await page.post('/api/retry', body)).status).toBe(400);
    expect(page.state.counts().quarantined).toBe(1);
  });

  it('retry of a path outside says so', async () => {
    const page = await PageAtWork.start();
    const answer = await page.post('/api/retry', { paths: ['/etc/passwd'] });
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: 'OUTSIDE' } }]);
  });

  it('try asks the peer now, and retries nothing', async () => {
    const page = await PageAtWork.start();
    quarantine(page, 'a.md');
    const answer = await page.post('/api/try');
    expect([answer.status, await answer.json(), page.asked]).toEqual([200, {}, ['try']]);
    expect(page.state.counts().quarantined).toBe(1);
  });

  it('rescan scans a folder, or all', async () => {
    const page = await PageAtWork.start();
    expect(await (await page.post('/api/rescan', { folder: 'notes' })).json()).toMatchObject({
      scans: [{ folder: 'notes', files: 1 }],
    });
    expect((await page.post('/api/rescan', { folder: 'none' })).status).toBe(404);
    expect(page.asked).toEqual(['rescan notes']);
  });

  it('pause and resume say how it stands then', async () => {
    const page = await PageAtWork.start();
    const paused = (await (await page.post('/api/pause', { forMs: 60_000 })).json()) as {
      paused: { since: number; until: number };
    };
    expect(paused.paused.until - paused.paused.since).toBe(60_000);
    expect(await (await page.post('/api/resume')).json()).toEqual({});
    for (const forMs of [0, -1, 'x', 1e12, null])
      expect((await page.post('/api/pause', { forMs })).status).toBe(400);
    expect(page.asked).toEqual(['pause 60000', 'resume']);
  });

  it('mirrors are run and accepted by name', async () => {
    const page = await PageAtWork.start();
    page.mirrors = [{ name: 'm', kind: 'share', path: 'shares/m' }];
    expect(await (await page.post('/api/mirrors/run', { names: ['m'] })).json()).toEqual({
      mirrors: page.mirrors,
    });
    await page.post('/api/mirrors/run');
    expect(await (await page.post('/api/mirrors/accept', { names: ['m'] })).json()).toMatchObject({
      mirrors: [{ name: 'm' }],
    });
    expect((await page.post('/api/mirrors/accept')).status).toBe(400);
    expect(page.asked).toEqual(['mirror m', 'mirror all', 'accept m']);
  });

  it('answers a hostile body with 400 or does what it says, and goes on', async () => {
    const page = await PageAtWork.start();
    await fc.assert(
      fc.asyncProperty(
        fc.json(),
        fc.constantFrom('retry', 'rescan', 'pause', 'mirrors/accept'),
        async (body, path) => {
          const answer = await page.post(`/api/${path}`, body);
          expect([200, 400, 404]).toContain(answer.status);
          await answer.arrayBuffer();
        },
      ),
      { numRuns: 60 },
    );
  });
});
