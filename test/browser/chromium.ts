import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, expect } from 'vitest';
import { afterwards } from '../support/afterwards.js';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** How long a test in a browser may take: machines are shared, and a browser is heavy. */
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
  /** What no visit may show: errors on the console, refused content, requests to elsewhere. */
  readonly failure: string[];
  /** Takes back what a test brought about itself, such as a daemon that is away. */
  forgive(pattern: RegExp): void;
}

/**
 * Visits an address. At its end the test fails when anything was wrong that nobody sees on the
 * page.
 */
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
  return { page, failure, forgive: (pattern) => void forgiven.push(pattern) };
}

const shots: string[] = [];

/** Keeps a picture of the page, outside of the repository, for who wants to look. */
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
