import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFailed } from 'vitest';
import { Random } from '../support/random.js';
import { Site } from '../support/site.js';
import { sha256 } from '../support/tree.js';
import { until } from '../support/wait.js';

const CRASHES = 5;
const FILES = 200;
/** A life ends within this. */
const LONGEST_LIFE_MS = 4_000;
/** A removal or a push takes so long at most: a kill and a change of the file come meanwhile. */
const SLOW_MS = 400;

it('the documents of emptied files are removed, and no others, however often the daemon is killed', async () => {
  const random = Random.seeded();
  onTestFailed(() => console.error(`PEERSYNC_TEST_SEED=${random.seed} repeats this`));
  const site = await Site.begin({ folders: [{ name: 'inbox', onDelete: 'remove' }] });
  /** The content of each file, and the time of its last change by `performance.now()`. */
  const files = new Map<string, { readonly text: string; readonly since: number }>();
  const write = (file: string, text: string) => {
    site.drop(file, text);
    files.set(file, { text, since: performance.now() });
  };
  for (let i = 0; i < FILES; i += 1) write(`inbox/${i % 10}/${i}.txt`, `text of ${i}`);
  await site.start();
  await site.allConfirmed();
  await site.stop();

  let began = performance.now();
  let asked = 0;
  const wrong: string[] = [];
  site.proxy.behaviour = async (call) => {
    const urls = new Set(
      call.path === '/api/remove_p.html' ? [...call.form].map(([, url]) => url) : [],
    );
    asked += urls.size;
    for (const [file, { text, since }] of files)
      if (urls.has(site.url(file)) && text !== '' && since < began)
        wrong.push(`asked to remove ${file}`);
    if (urls.size + call.items.length > 0) await sleep(random.between(0, SLOW_MS));
    return call.forward();
  };

  const names = [...files.keys()];
  for (let life = 0; life < CRASHES; life += 1) {
    const end = asked + random.between(1, FILES / 10);
    const daemon = site.spawn();
    began = performance.now();
    for (const file of names.splice(0, 15)) write(file, '');
    await until(
      () => asked >= end || performance.now() > began + LONGEST_LIFE_MS,
      'the end of its life',
    );
    await sleep(random.between(0, SLOW_MS));
    expect((await daemon.kill('SIGKILL')).signal).toBe('SIGKILL');
    const leaving = (await site.list()).filter(({ status }) => status === 'removing');
    for (const { path } of leaving.slice(-3))
      write(`inbox/${path}`, `text of ${path} again, ${life}`);
  }

  began = performance.now();
  await site.start();
  let others: string[] = [];
  const isSettled = async () => {
    others = [];
    const known = new Map((await site.list()).map(({ path, status }) => [`inbox/${path}`, status]));
    for (const [file, { text }] of files) {
      const shown = (await site.peer.peerdoc(site.url(file)))?.digest;
      const digest = text === '' ? undefined : sha256(Buffer.from(text));
      const status = text === '' ? 'skipped' : 'confirmed';
      if (shown !== digest || known.get(file) !== status)
        others.push(`${file}: ${known.get(file)}, ${shown}, and not ${status}, ${digest}`);
    }
    if ((await site.status()).folders[0]?.massDeletion !== undefined)
      await site.run('approve-deletes', 'inbox', '--yes');
    return others.length === 0;
  };
  await until(isSettled, 'the peer has the text of files that have some').catch(
    (error: unknown) => {
      throw new Error(others.join('\n'), { cause: error });
    },
  );
  await site.stop();
  expect(wrong).toEqual([]);
  expect(asked).toBeGreaterThan(0);
});
