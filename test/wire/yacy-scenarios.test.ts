import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { temporaryDirectory } from '../support/temp.js';
import { hexPdfOf, pdfOf } from './yacy/pdf-files.js';
import { PASSWORD, PNG, YacyWorld } from './yacy/yacy-world.js';

/**
 * A user of a YaCy peer points peersync at it. Each trap that was recorded of such a peer has a
 * scenario here that fails where it is walked into.
 */

vi.setConfig({ testTimeout: 240_000 });

/** Names, contents, and the words by which a search has to find them. */
const FILES: readonly (readonly [name: string, content: string | Uint8Array, words: string])[] = [
  ['ascii.txt', 'Alpha bravo, plain ASCII text.', 'Alpha bravo ASCII'],
  ['base64 alike.txt', 'Bravo1234567', 'Bravo1234567'],
  ['ümlaut.txt', 'Größe und 東京 charlie', 'Größe charlie'],
  ['less.txt', 'delta < echo and foxtrot > golf', 'delta echo foxtrot golf'],
  ['lone.txt', 'hotel <india\njuliet', 'hotel india juliet'],
  ['escaped.txt', 'hotel &lt;india&gt; &#60;juliet&#62; &amp;lt;kilo', 'hotel india juliet kilo'],
  ['coloured.log', '\x1b[32mlima\x1b[0m mike\x07 november', 'mike november'],
  ['crash.log', 'oscar papa\n\0\0\0quebec romeo sierra tango', 'oscar quebec tango'],
  ['broken.txt', 'uniform \uffff victor \ufffe whiskey &#65535;', 'uniform victor whiskey'],
  ['note.md', '# Mike\n\n*november* <http://x.example/oscar>', 'Mike november oscar'],
  ['marked.md', '\ufeff# juniper\n> kapok', 'juniper kapok'],
  ['data.json', '{"papa": ["quebec", 1]}', 'papa quebec'],
  ['rows.csv', 'romeo;sierra\r\n1;2\r\n', 'romeo sierra'],
  [
    'code.ts',
    'if (alpha && bravo) { charlie->delta = (echo<foxtrot>)golf; }',
    'alpha bravo delta foxtrot golf',
  ],
  ['no-extension', 'xray yankee', 'xray yankee'],
  ['drawing.svg', '<svg><text>xray yankee</text></svg>', 'xray yankee'],
  ['feed.xml', '<?xml version="1.0"?><feed><entry>zulu amber</entry></feed>', 'zulu amber'],
  [
    'page.html',
    '<title>Zulu</title><p>Amber <b>birch</b> \uffff cedar &#xfffe;</p>',
    'Zulu Amber birch cedar',
  ],
  ['utf16.txt', Buffer.from('\ufeffcedar', 'utf16le'), 'cedar'],
  ['picture.png', PNG, ''],
  ['signed.txt', '%!PS-Adobe-3.0\n only <tags> & entities &lt; to the end', ''],
  ['paper.pdf', pdfOf('Willow and yew'), 'Willow yew'],
  ['hexadecimal.pdf', hexPdfOf('fir and gum'), 'fir gum'],
  ['paper.txt', hexPdfOf('hazel and iris'), 'hazel iris'],
];

describe('files of all kinds', () => {
  it('arrive whole and searchable, each by one push and little more than one look-up', async () => {
    const world = await YacyWorld.start();
    for (const [name, content] of FILES) world.write(`notes/${name}`, content);

    expect(await world.run('once')).toMatchObject({ code: 0, stderr: '' });

    const names = FILES.map(([name]) => name);
    expect(await world.statuses()).toEqual(
      Object.fromEntries(names.map((name) => [`notes/${name}`, 'confirmed'])),
    );
    for (const [name, , words] of FILES) {
      const url = world.url(`notes/${name}`);
      const found = words
        .split(' ')
        .filter((word) => word === '' || world.peer.search(word).includes(url));
      expect([name, found.join(' ')]).toEqual([name, words]);
      const { mtimeMs } = statSync(join(world.directory, 'notes', name));
      expect(world.peer.kept(url)).toMatchObject({ collections: ['notes'], lastModified: mtimeMs });
    }
    // Files with a signature are sent byte for byte, whatever their names are.
    for (const [name, contentType] of [
      ['picture.png', 'image/png'],
      ['signed.txt', 'application/postscript'],
      ['paper.txt', 'application/pdf'],
    ]) {
      const { size } = statSync(join(world.directory, `notes/${name}`));
      expect(world.peer.kept(world.url(`notes/${name}`))).toMatchObject({ size, contentType });
    }
    const pushed = world.asked('/api/push_p').flatMap(({ urls }) => urls);
    expect(pushed.toSorted()).toEqual(names.map((name) => world.url(`notes/${name}`)).toSorted());
    expect(world.asked('/api/yacydoc').length).toBeLessThanOrEqual(names.length * 1.5);
  });

  it('are pushed without the one that makes a request fail, which is reported', async () => {
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
  it('is not taken for an accepted one, even if the peer answers with success', async () => {
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
  it('is proved by Digest before a document is sent; no referrer of another host is sent', async () => {
    const world = await YacyWorld.start({ peer: { password: PASSWORD }, push: { maxItems: 1 } });
    for (let n = 0; n < 10; n += 1) world.write(`notes/${n}.txt`, `note ${n}`);
    expect(await world.run('once')).toMatchObject({ code: 0, stderr: '' });
    expect(Object.values(await world.statuses())).toEqual(
      Array.from({ length: 10 }, () => 'confirmed'),
    );
    const refused = world.peer.served.filter(({ status }) => status === 401);
    expect(refused.map(({ size }) => size)).toEqual(refused.map(() => 0));
    expect(
      world.asked('/api/push_p').filter(({ status, size }) => status === 200 && size > 0),
    ).toHaveLength(10);
    expect(world.peer.served.filter(({ headers }) => headers.referer !== undefined)).toEqual([]);
  });
});

describe('the kind of peer', () => {
  it('is detected by harmless requests, shown, and stored', async () => {
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

describe('search', () => {
  it('finds documents by the search of YaCy, in a collection, newest first', async () => {
    const world = await YacyWorld.start();
    const push = async (name: string, collection: string) => {
      const file = join(temporaryDirectory(), name);
      writeFileSync(file, `Gulls & terns drink tea ${name}.`);
      const url = `http://notes.example.org/${name}?a=1&b=2`;
      const done = await world.run('push', file, '--collection', collection, '--url', url);
      expect(done).toMatchObject({ code: 0 });
    };
    await push('old.txt', 'birds');
    await push('other.txt', 'cups');
    const found = async (...options: string[]) => {
      const { stdout } = await world.run('search', 'terns', 'tea', '--json', ...options);
      return JSON.parse(stdout) as { total: number; items: { url: string; snippet: string }[] };
    };
    expect((await found()).total).toBe(2);
    expect(await found('--collection', 'birds')).toMatchObject({
      query: 'terns tea',
      total: 1,
      totalIsExact: true,
      items: [
        {
          url: 'http://notes.example.org/old.txt?a=1&b=2',
          snippet: expect.stringMatching(/^Gulls . terns drink tea/),
        },
      ],
    });
    expect((await found('--limit', '1')).items).toHaveLength(1);
    expect((await world.run('search', 'nowhere')).stdout).toBe('Nothing found for nowhere.\n');
    expect((await world.run('search')).code).toBe(2);
  });
});

describe('table', () => {
  it('sets rows of tables, but none whose key the peer would cut', async () => {
    const world = await YacyWorld.start();
    expect(await world.run('table', 'set', 'woods', '--pk', 'oak', 'price=1')).toMatchObject({
      code: 0,
    });
    const long = await world.run('table', 'set', 'woods', '--pk', 'abcdefghijklm', 'price=2');
    expect(long).toMatchObject({ stderr: expect.stringContaining('at most 12') });
    expect(long.code).not.toBe(0);
    expect(world.peer.tables.row('woods', 'abcdefghijkl')).toBeUndefined();
    const { stdout } = await world.run('table', 'get', 'woods', '--json');
    expect(JSON.parse(stdout)).toEqual({ pk: 'oak', price: '1' });
    expect((await world.run('table', 'get', 'none')).code).toBe(1);
  });
});

describe('share get', () => {
  it('refuses names that are not paths of files, with a reason', async () => {
    const world = await YacyWorld.start();
    const { code, stdout, stderr } = await world.run('share', 'get', '--data', '../..');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(
      /^peersync: .*\/share\/ .*"\.\.\/\.\."\.?\n {2}A name is .*such as lists\/a\.txt/,
    );
    expect(world.asked('/share/')).toEqual([]);
  });
});

describe('mirrors', () => {
  it('follow a shared file and a table', async () => {
    const directory = temporaryDirectory();
    const world = await YacyWorld.start({
      more: {
        mirror: {
          root: directory,
          shares: [{ data: 'dump/yacy_dump_a_ts.xml.gz' }],
          tables: [{ table: 'woods', path: 'woods.csv' }],
        },
      },
    });
    world.peer.share.put('dump/yacy_dump_a_ts.xml.gz', PNG, Date.UTC(2024, 0, 1));
    await world.run('table', 'set', 'woods', '--pk', 'oak', 'price=1');
    expect(await world.run('mirror')).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(join(directory, 'shares/dump/yacy_dump_a_ts.xml.gz'))).toEqual(PNG);
    expect(readFileSync(join(directory, 'woods.csv'), 'utf8')).toBe('pk,price\noak,1\n');
    const statuses = () => world.asked('/share/').map(({ status }) => status);
    expect(await world.run('mirror')).toMatchObject({ code: 0, stderr: '' });
    expect(statuses()).toEqual([200, 304]);
  });
});
