import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Site } from '../support/site.js';

/**
 * Time in which the folder is busy. Set PEERSYNC_BUSY_SECONDS=300 for the five minutes that are
 * promised.
 */
const BUSY_SECONDS = Number(process.env.PEERSYNC_BUSY_SECONDS ?? 60);
const CONFIRMED_AT_FIRST = 300;
/** A new file comes at each step, and an old one goes at every second step. */
const STEP_MS = 500;
/**
 * Steps until a removed file has left the index: 30 s. The files of the steps are the clock: one is
 * pushed later on a machine that is slow.
 */
const LONGEST_STEPS = 60;
const ASK_AGAIN_MS = 100;

/**
 * Names of one length, so that all files have one size: a new one may always be a removed one under
 * another name.
 */
const nameOf = (kind: string, i: number) => `inbox/${kind}-${String(i).padStart(4, '0')}.txt`;

/** Removed files whose documents the peer shows, and how long the others were shown, in ms. */
class Removals {
  readonly #removed = new Map<string, { readonly at: number; readonly step: number }>();
  readonly tookMs: number[] = [];
  #pushesRead = 0;
  #lastPushed = 0;

  constructor(private readonly site: Site) {}

  remove(file: string, step: number): void {
    rmSync(this.site.path(file));
    this.#removed.set(file, { at: performance.now(), step });
  }

  get left(): number {
    return this.#removed.size;
  }

  /** Looks each removed file up once; throws where one is shown for too long. */
  async look(): Promise<void> {
    for (const [file, { at, step }] of this.#removed) {
      const steps = this.#lastStep() - step;
      const isShown = (await this.site.peer.peerdoc(this.site.url(file))) !== undefined;
      const ms = performance.now() - at;
      if (isShown && steps > LONGEST_STEPS)
        throw new Error(
          `${file} was removed ${steps} steps ago, ${Math.round(ms)} ms; so were ${this.left} others`,
        );
      if (isShown) continue;
      this.#removed.delete(file);
      this.tookMs.push(ms);
    }
  }

  /** Returns the last step whose new file was pushed. */
  #lastStep(): number {
    const { pushes } = this.site.proxy;
    for (const { urls } of pushes.slice(this.#pushesRead))
      for (const url of urls)
        this.#lastPushed = Math.max(this.#lastPushed, Number(/new-(\d+)/.exec(url)?.[1] ?? 0));
    this.#pushesRead = pushes.length;
    return this.#lastPushed;
  }
}

it('each removed file leaves the index while 30 s of new files come, however busy its folder is', {
  timeout: BUSY_SECONDS * 1_000 + 240_000,
}, async () => {
  const site = await Site.begin({ folders: [{ name: 'inbox', onDelete: 'remove', settle: '2s' }] });
  for (let i = 0; i < CONFIRMED_AT_FIRST; i += 1) site.drop(nameOf('old', i));
  await site.start();
  await site.allConfirmed();

  const removals = new Removals(site);
  let isBusy = true;
  const work = async () => {
    const steps = Math.min((BUSY_SECONDS * 1_000) / STEP_MS, 2 * CONFIRMED_AT_FIRST);
    for (let step = 0; step < steps; step += 1) {
      site.drop(nameOf('new', step));
      if (step % 2 === 0) removals.remove(nameOf('old', step / 2), step);
      // A step that is late delays the others, so that no two come at once.
      await sleep(STEP_MS);
    }
    isBusy = false;
  };
  const look = async () => {
    while (isBusy || removals.left > 0) {
      await removals.look();
      await sleep(ASK_AGAIN_MS);
    }
  };
  await Promise.all([work(), look()]);

  const took = removals.tookMs.sort((a, b) => a - b).map((ms) => Math.round(ms) / 1_000);
  console.log(
    `${took.length} removals: median ${took[Math.floor(took.length / 2)]} s, longest ${took.at(-1)} s`,
  );
  expect((await site.status()).folders[0]?.massDeletion).toBeUndefined();
  await site.allConfirmed();
  await site.stop();
});
