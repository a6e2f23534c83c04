import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemCode } from '../lib/errors.js';

/** One file of the page, as it is sent. */
export interface Asset {
  readonly body: Buffer;
  readonly type: string;
  readonly etag: string;
}

/** What a browser gets of the page's directory; other kinds of files in it are for people who build it. */
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
};
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
  const charts = join(dirname(createRequire(import.meta.url).resolve('uplot')));
  const names = await readdir(directory).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const paths = [
    ...CHART_FILES.map((name) => join(charts, name)),
    ...names.filter((name) => TYPES[extname(name)] !== undefined).map((name) => join(directory, name)),
  ];
  return new Map(
    await Promise.all(paths.map(async (path) => [nameOf(path), await readAsset(path)] as const)),
  );
}

async function readAsset(path: string): Promise<Asset> {
  const body = await readFile(path);
  const etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, type: TYPES[extname(path)] ?? '', etag };
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
