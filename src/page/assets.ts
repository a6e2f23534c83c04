import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import mime from 'mime';
import { systemCode } from '../lib/errors.js';

/** One file of the page, as it is sent. */
export interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly etag: string;
}

/** What a browser gets of the page's directory; other kinds of files in it are for people who build it. */
const SENT = /\.(css|html|js|svg)$/;
/** Beside the page's own files, by the name that it asks for. */
const CHART_FILES = ['uPlot.esm.js', 'uPlot.min.css'];

const BROWSER_DIRECTORY = fileURLToPath(new URL('./browser/', import.meta.url));

/**
 * Reads everything that a browser may get, once: a request chooses from this list and never names a file on disk.
 *
 * @param directory of the page as the build left it
 * @returns by name: `index.html`, `style.css`; empty where the page was not built
 */
export async function readAssets(directory = BROWSER_DIRECTORY): Promise<ReadonlyMap<string, Asset>> {
  const charts = dirname(createRequire(import.meta.url).resolve('uplot'));
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const paths = [
    ...CHART_FILES.map((name) => join(charts, name)),
    ...names.filter((name) => SENT.test(name)).map((name) => join(directory, name)),
  ];
  const assets = paths.map(async (path): Promise<[string, Asset]> => {
    const body = await readFile(path);
    const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    return [basename(path), { body, type: `${mime.getType(path)}; charset=utf-8`, etag }];
  });
  return new Map(await Promise.all(assets));
}
