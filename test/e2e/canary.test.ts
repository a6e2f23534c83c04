import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import type { CanaryReport } from '../../src/commands/canary-report.js';
import { type Ended, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { HttpPeer } from '../support/http-peer.js';
import { answering, stranger, well, when } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { YacyWorld } from '../wire/yacy/yacy-world.js';
import { atRemotePeer, remotePeer } from './at-peer.js';

vi.setConfig({ testTimeout: 240_000 });

const CANARY = ['check', '--canary', '--yes'];

/** Returns the findings by name, with their hints. */
function found({ stdout }: Ended) {
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const findings = Object.fromEntries(lines.map(({ check, ok }) => [check, ok])) as Record<
    string,
    boolean
  >;
  return { findings, canary: lines.at(-1).canary as CanaryReport['canary'] };
}

describe('a canary at a YaCy', () => {
  it('checks text, a PDF, letters beyond ASCII, dates, and the time to visible', async () => {
    const world = await YacyWorld.start();
    const ended = await world.run(...CANARY, '--json', '--url', 'http://elsewhere.example.org/c');
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const { findings, canary } = found(ended);
    expect(findings).toMatchObject({
      'plain text': true,
      PDF: true,
      Word: true,
      Excel: true,
      'e-mail': true,
      'non-ASCII text': true,
      'addresses of folder notes': true,
    });
    expect(canary).toMatchObject({
      dialect: 'yacy',
      holdMs: 1_000,
      takesBinary: true,
      dropped: [],
    });
    // The peer takes back what it shows at first: that does not count.
    expect(canary.timeToVisibleMs).toBeGreaterThan(500);
    const urls = new Set(world.asked('/api/push_p').flatMap((served) => served.urls));
    const base = 'http://elsewhere.example.org/c/';
    expect(urls).toEqual(
      new Set([
        ...[
          'plain.txt',
          'document.pdf',
          'document.docx',
          'table.xlsx',
          'message.eml',
          'greetings.txt',
        ].map((name) => base + name),
        'http://notes.example.org/n/peersync-canary.txt',
      ]),
    );
  });

  it('finds folders whose addresses the peer drops, and reports the consequence', async () => {
    const folders = { notes: 'http://notes.example.org/n/', vault: 'http://vault.local/' };
    const world = await YacyWorld.start({ folders });
    const { code, stdout } = await world.run(...CANARY);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /ok +addresses of folder notes: http:\/\/notes\.example\.org\/n\/peersync-canary\/plain\.txt/,
    );
    expect(stdout).toMatch(
      /FAILED +addresses of folder vault: .*takes no documents with local addresses/,
    );
    expect(stdout).toContain('network.unit.domain');
    expect(stdout).toContain('Files of the folder "vault" would end in quarantine.');
  });

  it.each([
    ['local', 'public', { notes: 'http://notes.example.org/n/' }],
    ['global', 'local', { vault: 'http://vault.local/', disk: 'file:///srv/disk/' }],
  ] as const)(
    'of a %s network reports within seconds that all %s addresses are dropped, without waiting for them',
    async (network, reach, folders) => {
      // Whoever waits for the hold waits for longer than the test.
      const world = await YacyWorld.start({
        peer: { network },
        folders,
        confirm: { hold: '2m', timeout: '5m' },
      });
      const { code, stdout } = await world.run(...CANARY, '--timeout', '30s');
      expect(code).toBe(1);
      for (const name of Object.keys(folders))
        expect(stdout).toMatch(
          new RegExp(
            `FAILED +addresses of folder ${name}: .*takes no documents with ${reach} addresses`,
          ),
        );
      expect(stdout).toContain('network.unit.domain');
    },
  );

  it('pushes nothing without a confirmation, or to the URL of a file', async () => {
    const world = await YacyWorld.start();
    const unasked = await world.run('check', '--canary');
    expect(unasked).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Nothing was pushed'),
    });
    world.write('notes/plain.txt', 'mine');
    const taken = await world.run(...CANARY, '--url', 'http://notes.example.org/n/');
    expect(taken).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('would replace the document'),
    });
    expect(await world.run('check', '--yes')).toMatchObject({ code: 2 });
    expect(await world.run(...CANARY, '--url', 'nowhere')).toMatchObject({ code: 2 });
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toEqual([]);
  });

  it('does not wait longer than its time limit', async () => {
    const world = await YacyWorld.start({ confirm: { hold: '2m', timeout: '5m' } });
    const began = performance.now();
    const ended = await world.run(...CANARY, '--timeout', '6s', '--json');
    expect(performance.now() - began).toBeLessThan(120_000);
    expect(ended.code).toBe(1);
    expect(found(ended).findings['plain text']).toBe(false);
  });

  it('stops at a signal', async () => {
    const world = await YacyWorld.start({ confirm: { hold: '15s', timeout: '1m' } });
    const running = new Running([...CANARY, '--config', world.config]);
    const isPushed = () => world.asked('/api/push_p').some(({ urls }) => urls.length > 0);
    await until(isPushed, 'a canary is pushed');
    expect(await running.kill('SIGTERM')).toMatchObject({
      stderr: expect.stringContaining('Stopped'),
    });
  });
});

describe('a canary at an embedded peer', () => {
  it('is removed again, and reports that', async () => {
    const { run } = await atRemotePeer();
    const ended = await run(...CANARY, '--json');
    expect(ended).toMatchObject({ code: 0 });
    expect(found(ended).findings.canaries).toBe(true);
    expect(found(ended).canary.remaining).toEqual([]);
    const doc = await run(
      'doc',
      'https://files.example.org/inbox/peersync-canary/plain.txt',
      '--json',
    );
    expect(doc).toMatchObject({ code: 1, stderr: expect.stringContaining('NOT_FOUND') });
    expect((await run(...CANARY)).stdout).toMatch(
      /^ok +canaries: removed again: 6 documents pushed, and the peer shows none/m,
    );
  });

  it('is reported with the command that removes it if the peer refuses to remove it', async () => {
    const site = await Site.begin();
    const refusal = answering(
      200,
      '{"items":[{"item":"0","success":"false","message":"not mine"}]}',
    );
    site.proxy.behaviour = when(({ path }) => path === '/api/remove_p.html', refusal);
    const { code, stdout } = await site.run(...CANARY);
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^FAILED +canaries: 6 documents stay in the peer, .*plain\.txt, .*not mine/m,
    );
    const later = /`peersync (push --remove .*)`/.exec(stdout)?.[1]?.split(' ') ?? [];
    site.proxy.behaviour = well;
    expect(await site.run(...later, '--yes')).toMatchObject({ code: 0 });
    expect((await site.run('doc', later.at(-1) ?? '')).code).toBe(1);
  });
});

describe('a canary at a peer of the standard', () => {
  it('stays in a peer that may not be an embedded one, and is reported', async () => {
    const site = await Site.begin();
    site.proxy.behaviour = stranger;
    const { code, stdout } = await site.run(...CANARY);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^ok +canaries: 6 documents stay in the peer, in the collection peersync-canary \(.*plain\.txt/m,
    );
    expect((await site.run('doc', site.url('inbox/peersync-canary/plain.txt'))).code).toBe(0);
  });

  it('sends the text of a PDF, and reports that other files are skipped', async () => {
    const { run } = await atRemotePeer();
    const { code, stdout, stderr } = await run(...CANARY);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const kind of ['PDF', 'Word', 'Excel', 'e-mail'])
      expect(stdout).toMatch(new RegExp(`ok +${kind}: confirmed`));
    expect(stdout).toMatch(/ok +plain text: confirmed/);
    expect(stdout).toMatch(/ok +non-ASCII text: confirmed/);
    expect(stdout).toContain('text and the text of documents; other files are skipped');
  });

  it('continues if mirrored objects are missing or too large, reports each, and fails', async () => {
    const peer = await remotePeer();
    mkdirSync(join(peer.data, 'shares'), { recursive: true });
    writeFileSync(join(peer.data, 'shares', 'large.txt'), 'l'.repeat(2_000_000));
    const cwd = temporaryDirectory();
    const config = writeConfig(cwd, {
      peer: peer.section(),
      mirror: {
        tables: [{ table: 'nowhere' }],
        shares: [{ data: 'large.txt', maxSize: '1 MiB' }, { data: 'nowhere.txt' }],
      },
    });
    const { code, stdout } = await peersync([...CANARY, '--config', config], { cwd });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^FAILED +mirror nowhere: the peer has no table/m);
    expect(stdout).toMatch(
      /^FAILED +mirror large.txt: .* more than 1048576 bytes\n +Raise its `maxSize`/m,
    );
    expect(stdout).toMatch(/^FAILED +mirror nowhere.txt: the peer has no shared object/m);
    expect(stdout).toMatch(/^ok +plain text: confirmed/m);
  });

  it('shows the first bytes of an unexpected answer', async () => {
    const none = '{"count":"0","successall":"true","countsuccess":0,"countfail":0}';
    const { url } = await HttpPeer.start(({ body }, response) => {
      response.end(body.includes('url-0') ? 'Bananas are on offer today' : none);
    });
    const { run, cwd } = await atRemotePeer();
    const config = join(cwd, 'odd.json');
    const folders = [
      { path: temporaryDirectory(), collection: 'x', url: 'https://x.example.org/' },
    ];
    writeFileSync(config, JSON.stringify({ peer: { url, dialect: 'standard' }, folders }));
    const { code, stdout } = await run(...CANARY, '--config', config, '--timeout', '5s');
    expect(code).toBe(1);
    expect(stdout).toMatch(/FAILED +plain text: .*Bananas are on offer today/);
  });
});
