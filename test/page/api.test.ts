import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ItemLine, ItemsPage } from '../../src/page/api.js';
import { itemsPage } from '../../src/report/items.js';
import { quarantined } from '../../src/state/transitions.js';
import { lifeOf, pendingRecord } from '../state/records.js';
import { PageAtWork } from './page-at-work.js';

const TROUBLE = { code: 'PEER_REFUSED', message: 'The peer refused it.', hint: 'Mend it.' };
const AT = 1_700_000_000_000;

/** A page with these files in quarantine, named as `folder/path`. */
async function pageWith(...files: readonly string[]): Promise<PageAtWork> {
  const page = await PageAtWork.start();
  for (const file of files) {
    const [folder = '', ...path] = file.split('/');
    const item = pendingRecord(path.join('/'), folder);
    page.state.put(quarantined(item, item, item.version, TROUBLE, AT));
  }
  await page.state.commit();
  return page;
}

function confirm(page: PageAtWork, ...paths: readonly string[]): void {
  for (const path of paths) for (const entry of lifeOf(pendingRecord(path))) page.state.put(entry);
}

/** Every page of a question, followed to its end. */
async function leaf(
  page: PageAtWork,
  query: string,
  meanwhile = async () => {},
): Promise<ItemLine[]> {
  const items: ItemLine[] = [];
  for (let after = ''; ; ) {
    const got = (await page.json(`/api/items?${query}${after}`)) as ItemsPage;
    items.push(...got.items);
    if (got.next === undefined) return items;
    after = `&after=${encodeURIComponent(got.next)}`;
    await meanwhile();
  }
}

const names = async (...asked: Parameters<typeof leaf>): Promise<string[]> =>
  (await leaf(...asked)).map(({ folder, path }) => `${folder}/${path}`).sort();

it('GET /api/status equals the answer of the command, with the number of unnamed paths', async () => {
  const page = await PageAtWork.start();
  page.state.put(pendingRecord('a.md'));
  await page.state.commit();
  page.folders = page.folders.map((folder) => ({ ...folder, unnamedProblems: 2 }));
  const folders = [{ name: 'inbox', items: { pending: 1 } }, { name: 'notes' }];
  const truncated = { problems: { total: 4, shown: 0 } };
  const status = { running: true, items: { pending: 1 }, folders, truncated };
  expect(await page.json('/api/status')).toMatchObject(status);
});

describe('GET /api/items', () => {
  it('returns every file once, in pages of any size', async () => {
    const page = await pageWith('inbox/bad.md', 'notes/bad.md');
    const paths = Array.from({ length: 23 }, (_, i) => `d${i % 3}/${i}.md`);
    confirm(page, ...paths);
    await page.state.commit();
    const all = [...paths, 'bad.md'].map((path) => `inbox/${path}`).concat('notes/bad.md');
    for (const limit of [1, 5, 23, 25, 500])
      expect(await names(page, `limit=${limit}`)).toEqual(all.sort());
    expect(await names(page, 'limit=4&status=confirmed')).toHaveLength(23);
    expect(await names(page, 'limit=4&folder=notes')).toEqual(['notes/bad.md']);
    expect(await names(page, 'limit=4&folder=notes&status=confirmed')).toEqual([]);
  });

  it('returns the files whose path contains a name in any case, page by page', async () => {
    const plans = ['inbox/Plans/a.md', 'inbox/plan-b.md', 'inbox/sub/PLAN-d.md'];
    const page = await pageWith(...plans, 'inbox/c.md');
    expect(await names(page, 'status=quarantined&name=pLaN&limit=1')).toEqual(plans);
    expect(await names(page, 'name=nowhere')).toEqual([]);
  });

  it('returns the reason and the hint of each file', async () => {
    const page = await pageWith('inbox/sub/bad.md');
    expect(await leaf(page, 'status=quarantined')).toEqual([
      {
        folder: 'inbox',
        path: 'sub/bad.md',
        file: join(page.directory, 'inbox/sub/bad.md'),
        status: 'quarantined',
        since: AT,
        size: 2048,
        sha256: expect.any(String),
        url: 'https://files.example.org/inbox/sub/bad.md',
        attempts: expect.any(Number),
        ...TROUBLE,
      },
    ]);
  });

  it('skips no file if others leave the list between two pages', async () => {
    const files = Array.from({ length: 10 }, (_, i) => `inbox/${i}.md`);
    const page = await pageWith(...files);
    let retried = 0;
    const met = await names(page, 'status=quarantined&limit=3', async () => {
      for (let i = 0; i < 3 && retried < 6; i += 1, retried += 1)
        page.state.put(pendingRecord(`${retried}.md`));
      await page.state.commit();
    });
    expect([...new Set(met)]).toEqual(files);
  });

  it('starts at the first page for an invalid cursor', async () => {
    const page = await pageWith('inbox/a.md');
    const gone = Buffer.from('["inbox","gone.md"]').toString('base64url');
    for (const mark of ['x', 'W10', 'bnVsbA', gone])
      expect(await leaf(page, `after=${mark}`)).toHaveLength(1);
  });

  it.each([
    'status=nonsense',
    'limit=0',
    'limit=501',
    'limit=1.5',
    'limit=x',
    'status=gone&status=gone',
    'folder=nonsense',
  ])('refuses %s', async (query) => {
    const refused = query.startsWith('folder') ? [404, 'UNKNOWN_FOLDER'] : [400, 'BAD_REQUEST'];
    expect(await (await PageAtWork.start()).refusal(`/api/items?${query}`)).toEqual(refused);
  });
});

describe('a list among very many files', () => {
  /** Searches among 50,000 files. Returns the result and the turns of the event loop meanwhile. */
  async function found(
    page: PageAtWork,
    status: ItemLine['status'],
    onTurn: (turn: number) => void = () => {},
  ) {
    let isOver = false;
    const asked = itemsPage(page.config, page.state.entries, { status, limit: 9 }).finally(() => {
      isOver = true;
    });
    for (let turns = 1; ; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isOver) return { turns, paths: (await asked).items.map(({ path }) => path) };
      onTurn(turns);
    }
  }

  async function crowded(): Promise<PageAtWork> {
    const page = await PageAtWork.start();
    const other = pendingRecord('x', 'inbox', 'x');
    for (let i = 0; i < 50_000; i += 1) page.state.put({ ...other, path: String(i) });
    confirm(page, 'one.md', 'two.md');
    return page;
  }

  it('never blocks the event loop for long, even if nothing matches', async () => {
    const page = await crowded();
    const { turns, paths } = await found(page, 'confirmed');
    expect(turns).toBeGreaterThan(20);
    expect(paths).toEqual(['one.md', 'two.md']);
    expect(await found(page, 'gone')).toEqual({ turns: 1, paths: [] });
  });

  it('skips no file while others change', async () => {
    const page = await crowded();
    // One enters the list before the end of it, and one that was met leaves it.
    confirm(page, '5');
    const { paths } = await found(page, 'confirmed', (turn) => {
      if (turn === 2) page.state.put(pendingRecord('5'));
      if (turn === 3) confirm(page, '49000');
    });
    expect(paths).toEqual(['5', '49000', 'one.md', 'two.md']);
  });
});

describe('GET /api/why', () => {
  /** Returns the explanation of a path without the path itself. */
  async function why(page: PageAtWork, path: string): Promise<unknown> {
    const report = (await page.json(`/api/why?path=${encodeURIComponent(path)}`)) as object;
    return { ...report, file: undefined };
  }

  it('explains a file by its path, and by its name in lists', async () => {
    const page = await pageWith('inbox/a b.md');
    const report = { status: 'quarantined', folder: 'inbox', path: 'a b.md' };
    for (const path of [page.file('inbox/a b.md'), 'inbox/a b.md'])
      expect(await why(page, path)).toMatchObject(report);
  });

  it('answers the same for every path outside, whether it exists or not', async () => {
    const page = await PageAtWork.start();
    const there = page.file('outside.md');
    const first = await why(page, there);
    expect(first).toMatchObject({ status: 'outside' });
    const others = ['/etc/passwd', '/etc/nothing', `${page.directory}/inbox/../outside.md`, '/'];
    for (const path of [`${there}.not`, ...others]) expect(await why(page, path)).toEqual(first);
  });

  it('reveals nothing about the target of a link that leads outside', async () => {
    const page = await PageAtWork.start();
    mkdirSync(join(page.directory, 'secret'));
    writeFileSync(join(page.directory, 'secret/there.md'), 'x');
    symlinkSync(join(page.directory, 'secret'), join(page.directory, 'inbox/link'));
    const there = await why(page, 'inbox/link/there.md');
    expect(there).toMatchObject({ status: 'outside' });
    for (const name of ['absent.md', 'there.md/below'])
      expect(await why(page, `inbox/link/${name}`)).toEqual(there);
  });

  it.each(['', 'relative.md', 'elsewhere/a.md', '/a%00b'])('refuses "%s"', async (path) => {
    expect(await (await PageAtWork.start()).status(`/api/why?path=${path}`)).toBe(400);
  });
});

describe('POST /api', () => {
  const posted = async (page: PageAtWork, path: string, body?: unknown): Promise<unknown> => {
    const answer = await page.post(`/api/${path}`, body);
    return answer.status === 200 ? await answer.json() : answer.status;
  };

  it('retry retries all files, or the named ones', async () => {
    const page = await pageWith('inbox/a.md', 'inbox/sub/b.md', 'inbox/sub/c.md', 'inbox/d.md');
    const retry = (body: object) => posted(page, 'retry', body);
    expect(await retry({ paths: [join(page.directory, 'inbox/a.md')] })).toEqual({
      retried: 1,
      toRead: 0,
    });
    expect(await retry({ paths: ['inbox/sub'] })).toEqual({ retried: 2, toRead: 0 });
    expect(page.state.get('inbox', 'sub/c.md')?.status).toBe('pending');
    expect(page.state.figures().unsaved).toBe(0);
    expect(await retry({ all: true })).toMatchObject({ retried: 4 });
    expect(page.asked).toContain('try');
  });

  it.each([
    '{"all":false}',
    '{"paths":[]}',
    '{"paths":["x"]}',
    '{"paths":["/etc/passwd"]}',
    '{"all":',
  ])('retry refuses %s', async (body) => {
    const page = await pageWith('inbox/a.md');
    expect([await posted(page, 'retry', body), page.state.counts().quarantined]).toEqual([400, 1]);
  });

  it('try sends a request to the peer now, and retries no file', async () => {
    const page = await pageWith('inbox/a.md');
    expect([await posted(page, 'try'), page.asked]).toEqual([{}, ['try']]);
    expect(page.state.counts().quarantined).toBe(1);
  });

  it('rescan scans a folder', async () => {
    const page = await PageAtWork.start();
    const scans = [{ folder: 'notes', files: 1 }];
    expect(await posted(page, 'rescan', { folder: 'notes' })).toMatchObject({ scans });
    expect([await posted(page, 'rescan', { folder: 'none' }), page.asked]).toEqual([
      404,
      ['rescan notes'],
    ]);
  });

  it('approve-deletes approves the files that a person was shown, and starts the removal', async () => {
    const page = await PageAtWork.start();
    const ask = (files: unknown) => posted(page, 'approve-deletes', { folder: 'inbox', files });
    page.state.setMeta('watch.held-deletes.inbox', {
      files: 25,
      of: 40,
      examples: ['a'],
      since: 1,
      before: 9,
    });
    for (const files of [0, 24, 'x', undefined]) expect(await ask(files)).toBe(400);
    expect(await ask(25)).toMatchObject({ files: 25, of: 40 });
    expect(page.asked).toEqual(['scan inbox']);
    expect(page.state.meta('watch.approved-deletes.inbox')).toBe(9);
  });

  it('pause and resume return the new state', async () => {
    const page = await PageAtWork.start();
    const { paused } = (await posted(page, 'pause', { forMs: 60_000 })) as {
      paused: { since: number; until: number };
    };
    expect(paused.until - paused.since).toBe(60_000);
    expect(await posted(page, 'resume')).toEqual({ wasPaused: true });
    for (const forMs of [0, -1, 'x', 1e12, null])
      expect(await posted(page, 'pause', { forMs })).toBe(400);
    expect(page.asked).toEqual(['pause 60000', 'resume']);
  });

  it('mirrors are run and accepted by name', async () => {
    const page = await PageAtWork.start();
    page.mirrors = [{ name: 'm', kind: 'share', path: 'shares/m' }];
    const { mirrors } = page;
    expect(await posted(page, 'mirrors/run', { names: ['m'] })).toEqual({ mirrors });
    expect(await posted(page, 'mirrors/run')).toEqual({ mirrors });
    expect(await posted(page, 'mirrors/accept', { names: ['m'] })).toMatchObject({
      mirrors: [{ name: 'm' }],
    });
    expect(await posted(page, 'mirrors/accept')).toBe(400);
    expect(page.asked).toEqual(['mirror m', 'mirror all', 'accept m']);
  });

  it('survives hostile bodies', async () => {
    const page = await PageAtWork.start();
    const route = fc.constantFrom('retry', 'rescan', 'pause', 'approve-deletes', 'mirrors/accept');
    const isAnswered = fc.asyncProperty(fc.json(), route, async (body, path) => {
      expect([200, 400, 404]).toContain((await page.post(`/api/${path}`, body)).status);
    });
    await fc.assert(isAnswered, { numRuns: 60 });
  });
});
