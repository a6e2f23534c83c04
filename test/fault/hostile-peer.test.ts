import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { MirrorReport } from '../../src/mirror/record.js';
import { openMirrors } from '../support/mirrors.js';
import { serve } from '../support/server.js';
import { temporaryDirectory } from '../support/temp.js';
import { peersync } from '../support/warm-cli.js';

interface Asked {
  readonly path: string;
  readonly parameters: URLSearchParams;
}
type Reply = (asked: Asked, response: ServerResponse) => void;

let url: string;
let reply: Reply;
let outside: string;
let root: string;
let config: string;

const json =
  (value: unknown): Reply =>
  (_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
  };
const page =
  (text: string, type = 'text/html', status = 200): Reply =>
  (_, response) => {
    response.writeHead(status, { 'content-type': type }).end(text);
  };
const table = (name: string) => ({
  table: name,
  columns: ['a'],
  rows: [
    { pk: 'k1', cells: { a: `1 of ${name}` } },
    { pk: 'k2', cells: { a: '2' } },
  ],
});

/** A peer as it should be: one table, one share. */
const sound: Reply = (asked, response) => {
  const name = asked.parameters.get('table');
  if (asked.path.includes('share'))
    response.setHeader('content-type', 'application/pdf').end('%PDF-1.7 as it should be');
  else if (asked.path.includes('citation'))
    json({ url: asked.parameters.get('url'), sentences: [], citing: [], similar: [] })(asked, response);
  else if (name === null) json({ tables: ['prices'] })(asked, response);
  else json(table(name))(asked, response);
};

beforeEach(async () => {
  reply = sound;
  url = await serve((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const [path = '', query = ''] = (request.url ?? '').split('?');
      reply({ path, parameters: new URLSearchParams(`${query}&${Buffer.concat(chunks)}`) }, response);
    });
    response.on('error', () => {});
  });
  outside = temporaryDirectory();
  root = join(outside, 'deep', 'mirror');
  mkdirSync(join(outside, 'folder'));
});

function configure(mirror: object): void {
  config = join(outside, 'config.json');
  const folders = [{ path: join(outside, 'folder'), collection: 'c', url: 'https://f.example/' }];
  const peer = { url, dialect: 'standard' };
  const state = { dir: join(outside, 'state') };
  writeFileSync(config, JSON.stringify({ peer, folders, state, mirror: { root, ...mirror } }));
}

async function mirror() {
  const { code, stdout } = await peersync(['mirror', '--config', config, '--json']);
  const reports = stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  return { code, reports };
}

/** Every file below a directory with its content. */
function contents(directory: string): Map<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(directory)) return found;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    expect(lstatSync(path).isSymbolicLink()).toBe(false);
    if (entry.isFile()) found.set(relative(directory, path), readFileSync(path, 'utf8'));
  }
  return found;
}

describe('names from a hostile peer', () => {
  it('do not lead out of the root, however they are written', async () => {
    const upwards = ['../../evil', '..', '.', '/etc/evil', 'a/../../../evil', '..\\..\\evil'];
    const reserved = ['nul\u0000evil', 'CON', 'con.txt', ' evil ', 'evil.', '.hidden', 'x'.repeat(400)];
    const alike = ['\u00c4rger', 'A\u0308rger', '\u00e4rger', '\u202egnp.evil', 'line\nbreak', 'fine'];
    const names = [...upwards, ...reserved, ...alike];
    reply = (asked, response) => {
      const name = asked.parameters.get('table');
      json(name === null ? { tables: names } : table(name))(asked, response);
    };
    configure({ tables: [{ table: '*', path: '{table}.csv' }] });
    const before = contents(outside);
    const { code, reports } = await mirror();
    expect(code).toBe(0);
    const files = contents(root);
    expect(files.size).toBe(names.length);
    for (const { name, path } of reports) expect(name === '*' || files.has(path)).toBe(true);
    expect(new Set([...files.keys()].map((name) => name.normalize('NFC').toLowerCase())).size).toBe(
      names.length,
    );
    expect([...files.values()].every((text) => text.startsWith('pk,a\nk1,'))).toBe(true);
    expect(files.get('fine.csv')).toContain('1 of fine');
    const after = [...contents(outside).keys()].filter(
      (path) => !path.startsWith('deep') && !path.startsWith('state'),
    );
    expect(after.sort()).toEqual([...before.keys()].sort());
  }, 120_000);
});

const billionLaughs = `<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghij']
  .map((name, i) => `<!ENTITY ${name} "${`&${'abcdefghi'[i]};`.repeat(10)}">`)
  .join('')}<!ENTITY x SYSTEM "file:///etc/passwd">]>
<tables><table name="prices"><row pk="&x;"><cell col="a">&j;</cell></row></table></tables>`;

/** Answers until the other side has enough. */
function endless(
  response: ServerResponse,
  begin: string,
  more: (i: number) => string,
  isShare = false,
): void {
  response.setHeader('content-type', isShare ? 'application/pdf' : 'application/json');
  function* all(): Generator<string> {
    yield begin;
    for (let i = 0; ; i += 1) yield more(i);
  }
  const pieces = Readable.from(all(), { objectMode: false });
  pieces.on('error', () => {}).pipe(response);
}

const HOSTILE: readonly (readonly [string, Reply])[] = [
  ['an HTML error page with 200', page('<html><title>Error</title><body>Internal error</body></html>')],
  ['an HTML login page', page('<html><form><input name="password" type="password"></form></html>')],
  ['a JSON error with 200', json({ error: 'out of memory' })],
  ['an empty answer', page('', 'application/octet-stream')],
  ['an empty JSON object', json({})],
  ['plain text where JSON was said', page('it is broken', 'application/json')],
  [
    'half a table',
    page('{"table":"prices","columns":["a"],"rows":[\n{"pk":"k1","cells":{"a":"1"}},', 'application/json'),
  ],
  ['entities that explode', page(billionLaughs, 'text/xml')],
  ['a status of 500', page('java.lang.NullPointerException', 'text/html', 500)],
  ['404', page('no such thing', 'text/html', 404)],
  [
    'a redirect',
    (_, response) => {
      response.writeHead(302, { location: 'file:///etc/passwd' }).end();
    },
  ],
  [
    'an answer without end',
    (asked, response) => {
      const isShare = asked.path.includes('share');
      const begin = isShare ? '%PDF-1.7' : '{"table":"prices","columns":["a"],"rows":[\n';
      endless(response, begin, (row) => `{"pk":"k${row}","cells":{"a":"${'x'.repeat(1_000)}"}},\n`, isShare);
    },
  ],
  [
    'a row without end',
    (_, response) => {
      const begin = '{"table":"prices","columns":["a"],"rows":[\n{"pk":"k1","cells":{"a":"';
      endless(response, begin, () => 'x'.repeat(10_000));
    },
  ],
  [
    'an answer that stops half-way',
    (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100000' });
      response.write('{"table":"prices","columns":["a"],"rows":[\n{"pk":"k1","cells":{"a":"1"}}');
      setTimeout(() => response.destroy(), 20);
    },
  ],
  ['deep nesting', page(`{"table":"prices","rows":${'['.repeat(200_000)}`, 'application/json')],
];

describe('a mirror of a hostile peer', () => {
  it.each(HOSTILE)('keeps what it had when it gets %s', async (_, hostile) => {
    const { mirrors, root, close } = await openMirrors({
      baseUrl: url,
      directory: temporaryDirectory(),
      tables: [{ table: 'prices', maxSize: 2 * 1024 * 1024 }],
      shares: [{ data: 'report.pdf', maxSize: 2 * 1024 * 1024 }],
    });
    onTestFinished(close);
    const run = async () => {
      const reports: MirrorReport[] = [];
      for await (const report of mirrors.run(undefined)) reports.push(report);
      return reports;
    };
    const troubles = (reports: readonly MirrorReport[]) =>
      reports.flatMap(({ alarm, failure }) => alarm ?? failure ?? []);
    expect(troubles(await run())).toEqual([]);
    const before = contents(root);
    expect([...before.keys()].sort()).toEqual(['shares/report.pdf', 'tables/prices.csv']);
    reply = hostile;
    const reports = await run();
    expect(contents(root)).toEqual(before);
    expect(troubles(reports), JSON.stringify(reports)).toHaveLength(2);
    for (const { message, hint } of troubles(reports)) {
      expect(message).toMatch(/\S/);
      expect(hint).toMatch(/\S/);
      expect(`${message}${hint}`).not.toMatch(/\n\s+at /);
    }
    reply = sound;
    expect(troubles(await run())).toEqual([]);
    expect(contents(root)).toEqual(before);
  });

  it('is told by its exit code', async () => {
    configure({ tables: [{ table: 'prices' }] });
    expect(await mirror()).toMatchObject({ code: 0 });
    reply = page('<html><title>Error</title><body>Internal error</body></html>');
    expect(await mirror()).toMatchObject({ code: 1, reports: [{ failure: { code: 'PEER_ANSWER' } }] });
    reply = json({ table: 'prices', columns: ['a'], rows: [] });
    expect(await mirror()).toMatchObject({ code: 3, reports: [{ alarm: { code: 'TABLE_EMPTY' } }] });
  }, 120_000);
});
