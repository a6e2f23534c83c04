import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, expect } from 'vitest';
import { afterwards } from '../support/afterwards.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Time limit of a test in a browser, in ms. A browser is slow on a busy machine. */
export const LIMIT_MS = 240_000;

/**
 * The Chromium of this machine: `$CHROMIUM`, or the first of the usual names; undefined where there
 * is none.
 */
export const CHROMIUM = find();

if (CHROMIUM === undefined)
  console.log('no Chromium here (set $CHROMIUM): the tests of the page are skipped');

function find(): string | undefined {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const directories = (process.env.PATH ?? '').split(delimiter);
  const paths = NAMES.flatMap((name) => directories.map((directory) => join(directory, name)));
  return paths.find((path) => existsSync(path));
}

let browser: Promise<Browser> | undefined;

afterAll(async () => {
  await (await browser)?.close();
  browser = undefined;
});

/** A page of its own in the browser that the tests of a file share. */
export interface Visit {
  readonly page: Page;
  /** Failures that no visit may have: console errors, refused content, requests to other hosts. */
  readonly failure: string[];
  /** Ignores failures that a test causes on purpose, such as a stopped daemon. */
  forgive(pattern: RegExp): void;
}

/** Opens an address. The test fails at its end if the visit had failures. */
export async function visit(url: string, options: BrowserContextOptions = {}): Promise<Visit> {
  browser ??= chromium.launch({
    executablePath: CHROMIUM ?? '',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const context = await (await browser).newContext({
    viewport: { width: 1280, height: 800 },
    ...options,
  });
  context.setDefaultTimeout(Number(process.env.PATIENCE ?? 60_000));
  const failure: string[] = [];
  const forgiven: RegExp[] = [];
  const { origin } = new URL(url);
  context.on('request', (request) => {
    const target = new URL(request.url());
    if (target.origin !== origin && target.protocol !== 'data:')
      failure.push(`asked ${request.url()}`);
  });
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') failure.push(message.text());
  });
  context.on('weberror', (error) => failure.push(String(error.error())));
  const page = await context.newPage();
  afterwards('test', async () => {
    await context.close();
    expect(failure.filter((line) => !forgiven.some((pattern) => pattern.test(line)))).toEqual([]);
  });
  await page.goto(url);
  // The browser moves the focus at the first frame, which may come after the load. A menu that is
  // closed has a field for the focus, too, which gets it when the menu opens.
  const field = page.locator('[autofocus]:visible');
  if ((await field.count()) > 0) await page.locator('[autofocus]:focus').first().waitFor();
  return { page, failure, forgive: (pattern) => void forgiven.push(pattern) };
}

/** Does what leads to another page, such as a click on a link, and waits until that is loaded. */
export async function follow(page: Page, act: () => Promise<void>): Promise<void> {
  await Promise.all([page.waitForEvent('load'), act()]);
}

const shots: string[] = [];

/** Saves a screenshot outside of the repository. */
export async function shoot(page: Page, name: string, fullPage = true): Promise<void> {
  const directory = process.env.PEERSYNC_ARTIFACTS ?? join(tmpdir(), 'peersync-pictures');
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `${name}.png`);
  await page.screenshot({ path, fullPage });
  shots.push(path);
}

afterAll(() => {
  if (shots.length > 0) console.log(`pictures of the page:\n  ${shots.splice(0).join('\n  ')}`);
});
