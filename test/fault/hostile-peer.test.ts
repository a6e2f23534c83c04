import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import type { MirrorReport } from '../../src/mirror/record.js';
import { MARKER } from '../../src/mirror/target-path.js';
import { Running } from '../support/cli.js';
import { answering, type Behaviour, type Call, halfAnAnswer } from '../support/scripted-peer.js';
import { Site } from '../support/site.js';
import { until } from '../support/wait.js';
import { openMirrors, type ServerSetting } from './open-mirrors.js';

const JSON_TYPE = { 'content-type': 'application/json' };
const json = (value: unknown) => answering(200, JSON.stringify(value), JSON_TYPE);
const html = (text: string) => answering(200, text, { 'content-type': 'text/html' });
const isShare = ({ path }: Call) => path.includes('share');

/** A peer as it should be: tables of these names, and one share. */
function sound(...tables: readonly string[]): Behaviour {
  return (call) => {
    if (isShare(call))
      return answering(200, '%PDF-1.7 as it should be', { 'content-type': 'application/pdf' })(
        call,
      );
    const table = call.form.get('table');
    const rows = ['1', '2'].map((n) => ({ pk: `k${n}`, cells: { a: `${n} of ${table}` } }));
    return json(table === null ? { tables } : { table, columns: ['a'], rows })(call);
  };
}

let site: Site;
let root: string;
beforeEach(async () => {
  site = await Site.begin();
  root = site.path('mirror');
  site.proxy.behaviour = sound('prices');
});

/**
 * Every file below a directory with its content, but for the marker of a mirror root; none of them
 * is a link.
 */
function contents(directory: string): Map<string, string> {
  const found = new Map<string, string>();
  if (!existsSync(directory)) return found;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    expect(entry.isSymbolicLink()).toBe(false);
    if (entry.isFile() && entry.name !== MARKER)
      found.set(relative(directory, path), readFileSync(path, 'utf8'));
  }
  return found;
}

/** Mirrors of this peer. @returns what runs all of them once */
async function mirrored(setting: Partial<ServerSetting>): Promise<() => Promise<MirrorReport[]>> {
  const baseUrl = site.proxy.url;
  const { mirrors, close } = await openMirrors({ baseUrl, directory: site.directory, ...setting });
  onTestFinished(close);
  return async () => {
    const reports: MirrorReport[] = [];
    for await (const report of mirrors.run(undefined)) reports.push(report);
    return reports;
  };
}

it('names from a hostile peer do not lead out of the mirror root', async () => {
  const upwards = ['../../evil', '..', '.', '/etc/evil', 'a/../../../evil', '..\\..\\evil'];
  const reserved = [
    'nul\u0000evil',
    'CON',
    'con.txt',
    ' evil ',
    'evil.',
    '.hidden',
    'x'.repeat(400),
  ];
  const alike = [
    '\u00c4rger',
    'A\u0308rger',
    '\u00e4rger',
    '\u202egnp.evil',
    'line\nbreak',
    'fine',
  ];
  const names = [...upwards, ...reserved, ...alike];
  site.proxy.behaviour = sound(...names);
  const run = await mirrored({ tables: [{ name: '*', table: '*', path: '{table}.csv' }] });
  const isElsewhere = (path: string) => !/^(mirror|state)\//.test(path);
  const before = [...contents(site.directory).keys()].filter(isElsewhere);
  const reports = await run();
  expect(reports.flatMap(({ failure, condition }) => failure ?? condition ?? [])).toEqual([]);
  const files = contents(root);
  for (const { name, path } of reports) expect(name === '*' || files.has(path)).toBe(true);
  // No two of them are one file where case or Unicode's forms do not count.
  const folded = new Set([...files.keys()].map((name) => name.normalize('NFC').toLowerCase()));
  expect([files.size, folded.size]).toEqual([names.length, names.length]);
  expect([...files.values()].every((text) => text.startsWith('pk,a\nk1,'))).toBe(true);
  expect(files.get('fine.csv')).toContain('1 of fine');
  expect([...contents(site.directory).keys()].filter(isElsewhere)).toEqual(before);
});

const billionLaughs = `<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">${[...'bcdefghij']
  .map((name, i) => `<!ENTITY ${name} "${`&${'abcdefghi'[i]};`.repeat(10)}">`)
  .join('')}<!ENTITY x SYSTEM "file:///etc/passwd">]>
<tables><table name="prices"><row pk="&x;"><cell col="a">&j;</cell></row></table></tables>`;
const BEGIN = '{"table":"prices","columns":["a"],"rows":[\n';

/** Answers until the other side has enough. */
function endless(begin: string, more: (i: number) => string): Behaviour {
  return (call) => {
    call.response.setHeader('content-type', isShare(call) ? 'application/pdf' : 'application/json');
    function* all(): Generator<string> {
      yield isShare(call) ? '%PDF-1.7' : begin;
      for (let i = 0; ; i += 1) yield more(i);
    }
    const pieces = Readable.from(all(), { objectMode: false });
    pieces.on('error', () => {}).pipe(call.response);
    return undefined;
  };
}

const HOSTILE: readonly (readonly [string, Behaviour])[] = [
  [
    'an HTML error page with 200',
    html('<html><title>Error</title><body>Internal error</body></html>'),
  ],
  ['an HTML login page', html('<html><form><input name="password" type="password"></form></html>')],
  ['a JSON error with 200', json({ error: 'out of memory' })],
  ['an empty answer', answering(200, '', { 'content-type': 'application/octet-stream' })],
  ['an empty JSON object', json({})],
  ['plain text where JSON was said', answering(200, 'it is broken', JSON_TYPE)],
  ['half a table', answering(200, `${BEGIN}{"pk":"k1","cells":{"a":"1"}},`, JSON_TYPE)],
  ['entities that explode', answering(200, billionLaughs, { 'content-type': 'text/xml' })],
  ['a status of 500', answering(500, 'java.lang.NullPointerException')],
  ['404', answering(404, 'no such thing')],
  ['a redirect', answering(302, '', { location: 'file:///etc/passwd' })],
  [
    'an answer without end',
    endless(BEGIN, (row) => `{"pk":"k${row}","cells":{"a":"${'x'.repeat(1_000)}"}},\n`),
  ],
  ['a row without end', endless(`${BEGIN}{"pk":"k1","cells":{"a":"`, () => 'x'.repeat(10_000))],
  [
    'an answer that stops half-way',
    (call) =>
      halfAnAnswer({ ...call, forward: async () => (await sound()(call)) ?? call.forward() }),
  ],
  ['deep nesting', answering(200, `{"table":"prices","rows":${'['.repeat(200_000)}`, JSON_TYPE)],
];

it.each(HOSTILE)('a mirror keeps its file when it receives %s', async (_, hostile) => {
  const maxSize = 2 * 1024 * 1024;
  const tables = [{ table: 'prices', maxSize }];
  const run = await mirrored({ tables, shares: [{ data: 'report.pdf', maxSize }] });
  const unsuccessful = (reports: readonly MirrorReport[]) =>
    reports.flatMap(({ condition, failure }) => condition ?? failure ?? []);
  expect(unsuccessful(await run())).toEqual([]);
  const before = contents(root);
  expect([...before.keys()].sort()).toEqual(['shares/report.pdf', 'tables/prices.csv']);
  site.proxy.behaviour = hostile;
  const reports = await run();
  expect(contents(root)).toEqual(before);
  expect(unsuccessful(reports), JSON.stringify(reports)).toHaveLength(2);
  for (const { message, hint } of unsuccessful(reports)) {
    expect(message).toMatch(/\S/);
    expect(hint).toMatch(/\S/);
    expect(`${message}${hint}`).not.toMatch(/\n\s+at /);
  }
  site.proxy.behaviour = sound('prices');
  expect(unsuccessful(await run())).toEqual([]);
  expect(contents(root)).toEqual(before);
});

describe('the mirror command', () => {
  const peer = () => site.section({ dialect: 'standard', timeouts: { body: '60s' } });

  it('has an exit code for each result', async () => {
    site.configure({ peer: peer(), mirror: { tables: [{ table: 'prices' }] } });
    expect(await site.json('mirror')).toMatchObject({ code: 0 });
    site.proxy.behaviour = html('<html><title>Error</title><body>Internal error</body></html>');
    expect(await site.json('mirror')).toMatchObject({
      code: 1,
      lines: [{ failure: { code: 'PEER_ANSWER' } }],
    });
    site.proxy.behaviour = json({ table: 'prices', columns: ['a'], rows: [] });
    expect(await site.json('mirror')).toMatchObject({
      code: 3,
      lines: [{ condition: { code: 'TABLE_EMPTY' } }],
    });
  });

  it('leaves no partial file when it is stopped during an answer, and once gives such an answer up', async () => {
    site.configure({
      peer: peer(),
      mirror: { tables: [{ table: 'prices' }], shares: [{ data: 's' }] },
    });
    site.proxy.behaviour = (call) => {
      call.response.setHeader(
        'content-type',
        isShare(call) ? 'application/pdf' : 'application/json',
      );
      call.response.write(
        isShare(call) ? Buffer.alloc(100_000, 'x') : `${BEGIN}{"pk":"k","cells":{"a":"1"}}`,
      );
      return undefined;
    };
    const temporaryFiles = () => [...contents(root).keys()].filter((name) => name.includes('.tmp'));
    const running = new Running(['mirror', '--config', site.config]);
    await until(() => temporaryFiles().length > 0, 'an answer hangs in the middle');
    const { code, signal, stderr } = await running.kill('SIGINT');
    expect({ code, signal }).toEqual({ code: 1, signal: null });
    expect(stderr).toContain('Stopped before it was done.');
    expect(temporaryFiles()).toEqual([]);

    const began = performance.now();
    const once = await site.run('once', '--timeout', '1s');
    expect(once).toMatchObject({ code: 1, stderr: expect.stringContaining('after 1s') });
    expect(performance.now() - began).toBeLessThan(40_000);
    expect(temporaryFiles()).toEqual([]);
    site.proxy.behaviour = sound('prices');
    expect(await site.run('mirror')).toMatchObject({ code: 0 });
  });
});
