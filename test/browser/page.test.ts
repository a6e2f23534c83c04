import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { well } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';
import { CHROMIUM, LIMIT_MS, shoot, visit } from './chromium.js';

/** Matches the headline when all of a number of files are searchable. */
const rest = (files: number) => new RegExp(`^${files} files? searchable\\.$`);
const EMPTY = 'Nothing is searchable yet.';
/** Matches the messages of Chromium about a stopped daemon. */
const NO_DAEMON = /net::ERR_|Failed to load resource/;

/** Starts the daemon of a site. @returns the address of its page */
async function pageOf(site: Site): Promise<string> {
  const announcement = /status page at (http:\S+\/)/;
  const daemon = site.spawn();
  await daemon.says(announcement);
  return announcement.exec(daemon.stdout)?.[1] ?? '';
}

/** Opens the page of a daemon with an empty inbox. */
async function visited(parts: Parameters<typeof Site.begin>[0] = {}) {
  const site = await Site.begin({ status: { listen: '127.0.0.1:0' }, ...parts });
  const url = await pageOf(site);
  return { site, url, ...(await visit(url)) };
}

describe.skipIf(CHROMIUM === undefined)(
  'the page of a running daemon',
  { timeout: LIMIT_MS },
  () => {
    test('shows a folder that left the configuration, and an edit that was written to the peer', async () => {
      const mirror = { tables: [{ table: 'prices', edit: true }] };
      const status = { listen: '127.0.0.1:0' };
      const site = await Site.begin({
        status,
        folders: [{ name: 'inbox' }, { name: 'second' }],
        mirror,
      });
      site.drop('second/a.md');
      await site.run('table', 'set', 'prices', '--pk', 'apple', 'price=3');
      await site.run('once');
      site.configure({ status, folders: [{ name: 'inbox' }], mirror });
      writeFileSync(site.path('mirror/tables/prices.csv'), 'pk,price\napple,5\n');
      const { page } = await visit(await pageOf(site));
      await page.getByText('"second" is not in the configuration any more; the peer').waitFor();
      await page.getByText(/^peersync forget second --keep -c \//).waitFor();
      await page.getByText('wrote 1 row of the table "prices" to the peer (1 changed)').waitFor();

      await page.locator('#why-path').fill(site.path('mirror/tables/prices.csv'));
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.getByText('Below the mirror root: it comes from the peer.').waitFor();
      await page.getByText('The mirror "prices" writes it: the table "prices"').waitFor();
      await page.locator('#why-answer').getByText('Up to date').waitFor();
    });

    test('shows a dropped file go from pending to confirmed, and explains it, without a reload', async () => {
      const { page, site } = await visited();
      await page.getByRole('heading', { name: EMPTY }).waitFor();
      await page.evaluate('window.isTheSame = true');

      site.drop('inbox/notes/garden.md');
      await page.getByRole('heading', { name: rest(1) }).waitFor();
      await page.locator('.status-count.s-confirmed .number', { hasText: /^1$/ }).waitFor();
      expect(await page.title()).toBe('all searchable · peersync');
      expect(await page.locator('#favicon').getAttribute('href')).toContain('favicon-ok');

      await page.getByRole('link', { name: 'Confirmed 1', exact: true }).first().click();
      await page.getByRole('link', { name: 'inbox/notes/garden.md' }).click();
      await page.getByText('Confirmed: the peer shows this version.').waitFor();
      const answer = page.locator('#why-answer');
      expect(
        await answer.getByText(site.path('inbox/notes/garden.md'), { exact: true }).count(),
      ).toBe(1);
      expect(await answer.locator('.history li').count()).toBe(3);
      // The URL of the document and the address of the peer are links.
      for (const [place, name] of [
        [answer, site.url('inbox/notes/garden.md')],
        [page.locator('#peer'), site.proxy.url],
      ] as const)
        expect(await place.getByRole('link', { name }).getAttribute('href')).toBe(name);
      expect(await page.evaluate('window.isTheSame')).toBe(true);
      await shoot(page, 'real-confirmed-desktop');
      await page.setViewportSize({ width: 390, height: 844 });
      await shoot(page, 'real-confirmed-phone');
    });

    test('shows that the peer is away and how many files wait, and that it is back', async () => {
      const { page, site } = await visited();
      site.drop('inbox/before.md');
      await page.getByRole('heading', { name: rest(1) }).waitFor();

      await site.proxy.goDown();
      site.drop('inbox/while-away.md');
      await page.getByRole('heading', { name: /^1 file searchable\. 1 waits\.$/ }).waitFor();
      expect(await page.locator('#favicon').getAttribute('href')).toContain('favicon-bad');
      expect(await page.title()).toBe('attention: peer · 1 waiting · peersync');
      await page
        .locator('#peer')
        .getByText(/^It does not answer, for /)
        .waitFor();
      await page.getByText(/The peer does not answer: .* Since \d\d:\d\d\. Next try /).waitFor();
      // The reason of the outage is shown once, apart from the log.
      const wordsIn = async (place: string) =>
        (await page.locator(place).innerText()).match(/ECONNREFUSED/g)?.length ?? 0;
      expect(await wordsIn('.detail')).toBe(1);
      expect([await wordsIn('#attention'), await wordsIn('#peer')]).toEqual([0, 0]);
      // The address of a peer that does not answer is no link.
      await page.locator('#peer dd', { hasText: site.proxy.url }).waitFor();
      expect(await page.locator('#peer a').count()).toBe(0);
      await page
        .locator('.status-count.s-pending .note', { hasText: 'waiting for the peer' })
        .waitFor();
      await page.getByRole('button', { name: 'Try now' }).click();
      await page.getByText('The peer is asked again.').waitFor();
      await shoot(page, 'real-peer-away-desktop');

      await site.proxy.comeUp();
      await page.getByRole('heading', { name: rest(2) }).waitFor();
      await page.locator('.status-count.s-confirmed .number', { hasText: /^2$/ }).waitFor();
      await page
        .locator('#peer')
        .getByText(/^Answers, for /)
        .waitFor();
    });

    test('keeps its last view in grey while the daemon is away, and reconnects by itself', async () => {
      const { page, forgive, site, url } = await visited();
      forgive(NO_DAEMON);
      site.drop('inbox/one.md');
      await page.getByRole('heading', { name: rest(1) }).waitFor();

      await site.daemon.kill('SIGKILL');
      await page.getByRole('heading', { name: 'peersync does not answer.' }).waitFor();
      expect(await page.locator('.status-count.s-confirmed .number').textContent()).toBe('1');
      expect(await page.evaluate('getComputedStyle(document.querySelector("main")).filter')).toBe(
        'grayscale(1)',
      );
      expect(await page.title()).toMatch(/^no answer/);
      await shoot(page, 'real-daemon-away-desktop');

      site.configure({ status: { listen: new URL(url).host } });
      await pageOf(site);
      await page.getByRole('heading', { name: rest(1) }).waitFor();
      await page.locator('#connection', { hasText: /^live$/ }).waitFor();
      site.drop('inbox/two.md');
      await page.locator('.status-count.s-confirmed .number', { hasText: /^2$/ }).waitFor();
    });

    test('removes the documents of very many removed files after a confirmation', async () => {
      const { page, site } = await visited({ folders: [{ name: 'inbox', onDelete: 'remove' }] });
      for (let i = 10; i < 40; i += 1) site.drop(`inbox/old/${i}.md`);
      site.drop('inbox/new.md');
      await page.getByRole('heading', { name: rest(31) }).waitFor();
      rmSync(site.path('inbox/old'), { recursive: true });
      const folders = page.locator('#folders');
      await folders
        .getByText(/^30 of 31 files were removed or emptied at once: old\/.* and 27 more\. Their/)
        .waitFor();
      await page
        .getByRole('heading', { name: '31 documents searchable, 30 of them of removed files.' })
        .waitFor();
      await page.locator('.detail code', { hasText: 'peersync approve-deletes inbox' }).waitFor();
      await folders
        .getByRole('button', { name: 'Remove 30 documents of folder "inbox" from the peer' })
        .click();
      const dialog = page.getByRole('dialog', {
        name: 'Remove 30 documents of folder "inbox" from the peer?',
      });
      await shoot(page, 'real-held-deletes-desktop');
      await dialog.getByRole('button', { name: 'Remove them' }).click();
      await page.locator('.status-count.s-removed .number', { hasText: /^30$/ }).waitFor();
      await page.getByRole('heading', { name: rest(1) }).waitFor();
    });

    test('retries one file or all files in quarantine', async () => {
      const { page, site } = await visited();
      site.proxy.behaviour = async (call) => {
        const answer = await call.forward();
        if (!call.urls.some((url) => url.includes('bad'))) return answer;
        const items = call.urls.map((url, i) => {
          const isBad = url.includes('bad');
          const message = isBad ? 'url is in the blacklist' : '';
          return [`item-${i}`, { item: String(i), url, success: String(!isBad), message }];
        });
        const report = {
          count: String(items.length),
          successall: 'false',
          ...Object.fromEntries(items),
        };
        const headers = { 'content-type': 'application/json' };
        return { ...answer, headers, body: Buffer.from(JSON.stringify(report)) };
      };
      for (const name of ['bad-1.md', 'bad-2.md', 'bad-3.md', 'good.md'])
        site.drop(`inbox/${name}`);
      await page.getByRole('heading', { name: '1 file searchable. 3 need you.' }).waitFor();
      const rows = page.locator('#files tbody tr:not(.below)');
      await until(async () => (await rows.count()) === 3, 'three rows');
      const reason = page.locator('#files .below').first();
      expect(await reason.textContent()).toContain('The peer refused it: url is in the blacklist.');
      // Each file shows its reason, even if the file above has the same.
      expect((await page.locator('#files').innerText()).match(/blacklist/g)).toHaveLength(3);
      await page
        .locator('.detail')
        .getByText('3 files cannot be delivered without a change.')
        .waitFor();
      await shoot(page, 'real-quarantine-desktop');

      site.proxy.behaviour = well;
      await page.getByRole('button', { name: 'Retry bad-2.md' }).click();
      await page.getByText('1 file is tried again.').waitFor();
      await page.getByRole('heading', { name: '2 files searchable. 2 need you.' }).waitFor();
      await until(async () => (await rows.count()) === 2, 'two rows');

      await page.getByRole('button', { name: 'Retry all' }).click();
      await page.getByText('2 files are tried again.').waitFor();
      await page.getByRole('heading', { name: rest(4) }).waitFor();
      await page.getByText(/^Nothing is in quarantine/).waitFor();
      // The tab has the same number as the list.
      await page.getByRole('link', { name: 'Quarantine 0', exact: true }).last().waitFor();
    });

    test('explains any path, even one in the address of the page, and shows errors with their hints', async () => {
      const site = await Site.begin({ status: { listen: '127.0.0.1:0' } });
      site.drop('inbox/ein Brief & mehr+.md');
      const file = site.path('inbox/ein Brief & mehr+.md');
      const { page, forgive } = await visit(
        `${await pageOf(site)}#why=${encodeURIComponent(file)}`,
      );
      const answer = page.locator('#why-answer');
      // The explanation is updated until the file is confirmed.
      await answer.getByText('Confirmed: the peer shows this version.').waitFor();
      expect(await answer.locator('.facts').textContent()).toContain(file);

      await page.getByRole('textbox', { name: 'Why?' }).fill('/etc/hostname');
      await page.getByRole('textbox', { name: 'Why?' }).press('Enter');
      await answer.getByText('Not watched.').waitFor();
      expect(decodeURIComponent(new URL(page.url()).hash)).toBe('#why=/etc/hostname');

      forgive(/status of 4\d\d/);
      await page.getByRole('textbox', { name: 'Why?' }).fill(site.path('inbox'));
      await page.getByRole('button', { name: 'Explain' }).click();
      await answer.getByText(/is the folder "inbox" itself\. Name a file in it/).waitFor();
      await answer.getByRole('button', { name: 'Close' }).click();
      await answer.waitFor({ state: 'hidden' });

      // Escape closes the explanation from any element.
      for (const leave of [false, true]) {
        await page.getByRole('textbox', { name: 'Why?' }).fill('inbox/ein Brief & mehr+.md');
        await page.keyboard.press('Enter');
        await answer.waitFor();
        if (leave) await page.getByRole('textbox', { name: 'Why?' }).blur();
        await page.keyboard.press('Escape');
        await answer.waitFor({ state: 'hidden' });
        expect(new URL(page.url()).hash).toBe('');
      }
    });

    test('pauses for an hour and resumes', async () => {
      const { page, site } = await visited();
      await page.getByRole('heading', { name: EMPTY }).waitFor();
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByRole('button', { name: 'for 1 hour' }).click();
      await page
        .getByRole('heading', { name: /^Nothing is searchable yet\. Paused until \d\d:\d\d\.$/ })
        .waitFor();
      site.drop('inbox/later.md');
      await page
        .getByRole('heading', {
          name: /^Nothing is searchable yet\. 1 waits\. Paused until \d\d:\d\d\.$/,
        })
        .waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByRole('heading', { name: rest(1) }).waitFor();
    });

    test('asks for the token if there is one, and opens with the right token', async () => {
      const token = 'a long and winding token 0123456789';
      const site = await Site.begin();
      const file = site.path('token');
      writeFileSync(file, token, { mode: 0o600 });
      site.configure({ status: { listen: '127.0.0.1:0', token: { file } } });
      const url = await pageOf(site);
      const { page, forgive } = await visit(url);
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      expect(await page.getByText('That is not the token.').isVisible()).toBe(false);
      await page.getByText(`The token stands in the file ${file} (status.token.file).`).waitFor();
      await shoot(page, 'real-sign-in-desktop');

      await page.getByLabel('Token').fill('a guess');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('That is not the token.').waitFor();

      await page.getByLabel('Token').fill(token);
      await page.getByLabel('Token').press('Enter');
      await page.getByRole('heading', { name: EMPTY }).waitFor();
      site.drop('inbox/one.md');
      await page.getByRole('heading', { name: rest(1) }).waitFor();

      // A session that is over leads back to the sign-in.
      forgive(/status of 401/);
      await page.keyboard.press('?');
      await page.getByRole('button', { name: 'Sign this browser out' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await page.goto(url);
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    });
  },
);
