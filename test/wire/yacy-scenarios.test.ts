import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { pdfOf } from './yacy/pdf-files.js';
import { PASSWORD, PNG, YacyWorld } from './yacy/yacy-world.js';

/**
 * A user of a YaCy peer points peersync at it. Each trap that was recorded of such a peer has a scenario here that fails
 * where it is walked into.
 */

vi.setConfig({ testTimeout: 240_000 });

describe('files of all kinds', () => {
  it('arrive whole, as text that a search finds, each by one push and hardly more than one look-up', async () => {
    const world = await YacyWorld.start();
    const files: Record<
      string,
      { readonly content: string | Uint8Array; readonly words: readonly string[] }
    > = {
      'ascii.txt': { content: 'Alpha bravo, plain ASCII text.', words: ['Alpha', 'bravo', 'ASCII'] },
      'base64 alike.txt': { content: 'Bravo1234567', words: ['Bravo1234567'] },
      'ümlaut.txt': { content: 'Größe und 東京 charlie', words: ['Größe', 'charlie'] },
      'less.txt': { content: 'delta < echo and foxtrot > golf', words: ['delta', 'echo', 'foxtrot', 'golf'] },
      'lone.txt': { content: 'hotel <india\njuliet', words: ['hotel', 'india', 'juliet'] },
      'entity.txt': { content: 'kilo &lt; lima', words: ['kilo', 'lima'] },
      'note.md': {
        content: '# Mike\n\n*november* <http://x.example/oscar>',
        words: ['Mike', 'november', 'oscar'],
      },
      'data.json': { content: '{"papa": ["quebec", 1]}', words: ['papa', 'quebec'] },
      'rows.csv': { content: 'romeo;sierra\r\n1;2\r\n', words: ['romeo', 'sierra'] },
      'code.ts': {
        content: 'const tango: Map<uniform, victor> = whiskey;',
        words: ['tango', 'uniform', 'victor'],
      },
      'no-extension': { content: 'xray yankee', words: ['xray', 'yankee'] },
      'page.html': {
        content: '<title>Zulu</title><p>Amber <b>birch</b></p>',
        words: ['Zulu', 'Amber', 'birch'],
      },
      'utf16.txt': { content: Buffer.from('\ufeffcedar', 'utf16le'), words: ['cedar'] },
      'picture.png': { content: PNG, words: [] },
      'paper.pdf': { content: pdfOf('Willow and yew'), words: ['Willow', 'yew'] },
    };
    for (const [name, { content }] of Object.entries(files)) world.write(`notes/${name}`, content);

    expect(await world.run('once')).toMatchObject({ code: 0, stderr: '' });

    const names = Object.keys(files);
    expect(await world.statuses()).toEqual(
      Object.fromEntries(names.map((name) => [`notes/${name}`, 'confirmed'])),
    );
    for (const [name, { words }] of Object.entries(files)) {
      const url = world.url(`notes/${name}`);
      const found = words.filter((word) => world.peer.search(word).includes(url));
      expect({ name, found }).toEqual({ name, found: words });
      const { mtimeMs } = statSync(join(world.directory, 'notes', name));
      expect(world.peer.kept(url)).toMatchObject({ collections: ['notes'], lastModified: mtimeMs });
    }
    expect(world.peer.kept(world.url('notes/picture.png'))).toMatchObject({
      size: PNG.length,
      contentType: 'image/png',
    });
    const pushed = world.asked('/api/push_p').flatMap(({ urls }) => urls);
    expect(pushed.toSorted()).toEqual(names.map((name) => world.url(`notes/${name}`)).toSorted());
    expect(world.asked('/api/yacydoc').length).toBeLessThanOrEqual(names.length * 1.5);
  });

  it('of which one makes a request fail are pushed without it, and it is named', async () => {
    const world = await YacyWorld.start({
      folders: { notes: 'http://notes.example.org/', private: 'http://vault.local/' },
      push: { synchronous: true, maxItems: 50, linger: '200ms' },
    });
    for (let n = 0; n < 10; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    world.write('private/secret.txt', 'secret');
    expect(await world.run('once')).toMatchObject({ code: 3 });
    const statuses = await world.statuses();
    expect(statuses['private/secret.txt']).toBe('quarantined');
    expect(Object.values(statuses).filter((status) => status === 'confirmed')).toHaveLength(10);
  });
});

describe('a push that the peer could not read', () => {
  it('is not taken for one that it took, though it answers with success', async () => {
    const world = await YacyWorld.start();
    world.peer.loseNext('/api/push_p.json');
    for (let n = 0; n < 3; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    expect(await world.run('once')).toMatchObject({ code: 0 });
    for (let n = 0; n < 3; n += 1) {
      expect(world.peer.kept(world.url(`notes/${n}.txt`))?.text).toBe(`note ${n}`);
      const { stdout } = await world.run('why', join(world.directory, `notes/${n}.txt`));
      expect(stdout.match(/\) accepted$/gm)).toHaveLength(1);
    }
  });
});

describe('the password of the administrator', () => {
  it('is proven by Digest, before a document travels; pages of other hosts are never named', async () => {
    const world = await YacyWorld.start({ peer: { password: PASSWORD }, push: { maxItems: 1 } });
    for (let n = 0; n < 10; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    expect(await world.run('once')).toMatchObject({ code: 0, stderr: '' });
    expect(Object.values(await world.statuses())).toEqual(Array.from({ length: 10 }, () => 'confirmed'));
    const refused = world.peer.served.filter(({ status }) => status === 401);
    expect(refused.map(({ size }) => size)).toEqual(refused.map(() => 0));
    expect(world.asked('/api/push_p').filter(({ status, size }) => status === 200 && size > 0)).toHaveLength(
      10,
    );
    expect(world.peer.served.filter(({ headers }) => headers.referer !== undefined)).toEqual([]);
  });
});

describe('what kind of peer it is', () => {
  it('is found out by questions that change nothing, shown, and remembered', async () => {
    const world = await YacyWorld.start();
    world.write('notes/a.txt', 'a');
    expect(await world.run('once')).toMatchObject({ code: 0 });
    const first = world.peer.served.findIndex(({ target }) => target.startsWith('/api/push_p'));
    for (const { method, size } of world.peer.served.slice(0, first))
      expect([method, size]).toEqual(['GET', 0]);
    const questions = () => world.asked('/api/peerdoc').length;
    const asked = questions();
    expect(asked).toBeGreaterThan(0);
    world.write('notes/b.txt', 'b');
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(questions()).toBe(asked);
    expect((await world.run('status', '--json')).stdout).toContain('"yacy"');
    expect((await world.run('check')).stdout).toContain('yacy');
  });
});
