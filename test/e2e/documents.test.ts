import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync, gzipSync } from 'node:zlib';
import { zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import {
  declaring,
  docx,
  eml,
  epub,
  openDocument,
  pdf,
  pdfOf,
  pptx,
  RYUMIN,
  rtf,
  xlsx,
  zipped,
} from '../content/documents.js';
import { tar, tarMember } from '../content/tar.js';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

interface Listed {
  readonly path: string;
  readonly status: string;
  readonly code?: string;
  readonly message?: string;
}

/** The most memory that a process has taken, in MB. */
function mostMemory(pid: number | undefined): number {
  const [, kB] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kB) / 1024;
}

/** The processes that a process started, and that have not ended. */
function childrenOf(pid: number | undefined): string[] {
  const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return ids === '' ? [] : ids.split(' ');
}

/**
 * Drops files into a folder of a daemon with its own peer, and waits until each has come to rest.
 */
async function daemonWith(files: Readonly<Record<string, Uint8Array>>) {
  const directory = temporaryDirectory();
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
  });
  for (const [name, bytes] of Object.entries(files))
    writeFileSync(join(directory, 'inbox', name), bytes);
  const daemon = new Running(['run', '-c', config]);
  await daemon.says(/search it at http:\/\/127\.0\.0\.1:\d+\//);
  const base = /search it at (http:\/\/[\d.:]+\/)/.exec(daemon.stdout)?.[1] ?? '';
  const list = async () => {
    const { stdout } = await peersync(['list', '--json', '-c', config]);
    return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Listed]));
  };
  let listed: Listed[] = [];
  await until(
    async () => {
      listed = await list();
      const waits = listed.some(({ status }) => status === 'pending' || status === 'accepted');
      return listed.length === Object.keys(files).length && !waits;
    },
    'each file has come to rest',
    180_000,
  );
  const found = async (word: string) => {
    const answer = await fetch(`${base}search.json?query=${encodeURIComponent(word)}`);
    const { items } = (await answer.json()) as {
      readonly items: readonly { readonly url: string }[];
    };
    return items.map(({ url }) =>
      decodeURIComponent(new URL(url).pathname.slice('/inbox/'.length)),
    );
  };
  const why = async (name: string) =>
    (await peersync(['why', join(directory, 'inbox', name), '-c', config])).stdout;
  const search = (...args: readonly string[]) => peersync(['search', ...args, '-c', config]);
  return { daemon, found, listed, search, why };
}

describe('documents', () => {
  it('of each format are found by a word of their text, and unreadable ones have a reason', async () => {
    // PDF.js reads a page that is not where the file says, and leaves a promise alone that was
    // rejected meanwhile.
    const places = Buffer.from(pdf('Zirbelnuss', 'more'))
      .toString('latin1')
      .replace('/Count', '/Other');
    const misplaced = Buffer.from(
      places.replace(/((\d{10} 00000 n \n){6})\d{10}/, '$10000000003'),
      'latin1',
    );
    const good = {
      'a.docx': docx('Eichenholz'),
      'b.pptx': pptx('Birkenrinde'),
      'c.xlsx': xlsx(['Buchecker', 'Ahorn']),
      'd.odt': openDocument('text', 'Kastanie'),
      'e.ods': openDocument('spreadsheet', 'Lindenblatt'),
      'f.odp': openDocument('presentation', 'Pappel'),
      'g.epub': epub('Weidenkorb'),
      'h.rtf': rtf('Erlenbruch'),
      'i.pdf': pdf('Fichtenzapfen'),
      'i2.pdf': misplaced,
      'i3.pdf': pdfOf(Buffer.from('BT /F1 12 Tf 72 720 Td <93fa967b> Tj ET'), '', RYUMIN),
      'j.eml': eml('Tannennadel', { name: 'k.docx', bytes: docx('Hainbuche') }),
      'k.zip': zipSync({ 'Robinie.pdf': pdf('Ulmenallee') }),
      'l.tar.gz': gzipSync(tar({ name: 'a.docx', content: docx('Vogelbeere') })),
      'm.mbox': Buffer.concat([
        Buffer.from('From a\n'),
        eml('Zeder'),
        Buffer.from('\nFrom b\n'),
        eml('Wacholder'),
      ]),
    };
    const words =
      'Eichenholz Birkenrinde Ahorn Kastanie Lindenblatt Pappel Weidenkorb Erlenbruch Fichtenzapfen Zirbelnuss 日本 Hainbuche Ulmenallee Vogelbeere Wacholder';
    const { found, listed, search, why } = await daemonWith({
      ...good,
      'broken.pdf': pdf('words').subarray(0, 200),
      'secret.docx': Buffer.from('d0cf11e0a1b11ae100', 'hex'),
      'scan.pdf': pdf(''),
      'old.gif': Buffer.from('GIF89a\0'),
      'a.zip': zipped({ 'a.txt': 'words' }).subarray(0, 60),
      'b.whl': zipped({ 'a.txt': 'words' }),
    });
    const paths = Object.keys(good);
    for (const [i, word] of words.split(' ').entries())
      expect(await found(word)).toEqual([paths[i]]);
    for (const [args, shown] of [
      [['Tannennadel', 'Hainbuche'], '1 of 1 result.'],
      [['Tannennadel Hainbuche'], '1 of 1 result.'],
      [['"Hainbuche Tannennadel"'], 'Nothing found for "Hainbuche Tannennadel".'],
      [['Fichtenzapfem'], '1 of 1 result, with other forms of the words.'],
      [['Ahorn', '--collection', 'none'], 'Nothing found for Ahorn.'],
    ] as const) {
      const { code, stdout } = await search(...args);
      expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([0, shown]);
    }
    const { items } = JSON.parse((await search('--json', 'Ahorn')).stdout);
    expect(items).toMatchObject([
      { title: 'Minutes & more', url: expect.stringMatching(/c\.xlsx$/) },
    ]);
    expect(await why('i.pdf')).toContain('Its text travels: the PDF reader found 1 word.');
    expect(await why('k.zip')).toContain('Its text travels: the archive reader found 4 words.');
    expect(await why('old.gif')).toContain('The file is a picture (GIF).');
    expect(await why('b.whl')).toContain('The file is a ZIP archive under another name than .zip.');
    const others = listed.filter(({ status }) => status !== 'confirmed');
    expect(others.map(({ code, path, status }) => [path, status, code])).toEqual([
      ['a.zip', 'quarantined', 'DOCUMENT_BROKEN'],
      ['b.whl', 'skipped', 'NOT_TEXT'],
      ['broken.pdf', 'quarantined', 'DOCUMENT_BROKEN'],
      ['old.gif', 'skipped', 'NOT_TEXT'],
      // Depends on whether OCR is installed.
      ['scan.pdf', 'skipped', expect.stringMatching(/^NO_(WORDS|OCR)$/)],
      ['secret.docx', 'quarantined', 'DOCUMENT_ENCRYPTED'],
    ]);
  }, 120_000);

  it('are not read again after kill -9 while the peer is away, and the process that reads them ends', async () => {
    const directory = temporaryDirectory();
    const peer = { url: 'http://127.0.0.1:9', dialect: 'standard' };
    const config = writeConfig(directory, { peer });
    const words = ['one', 'two', 'three'];
    for (const word of words)
      writeFileSync(join(directory, 'inbox', `${word}.pdf`), pdf(`the document ${word}`));
    const extracts = join(directory, 'state', 'extracts');
    const stored = (extension: string) =>
      existsSync(extracts)
        ? readdirSync(extracts)
            .filter((name) => name.endsWith(extension))
            .map((name) => `${name} ${statSync(join(extracts, name)).ino}`)
        : [];
    const pages = () => stored('.html');
    const daemon = new Running(['run', '-c', config]);
    // The record of a page is written after it. Without a record, a document is read again.
    await until(async () => stored('.json').length === 3, 'they are read');
    const readers = childrenOf(daemon.child.pid);
    expect(readers).not.toEqual([]);
    const before = pages();
    await daemon.kill('SIGKILL');
    await until(() => readers.every((reader) => !existsSync(`/proc/${reader}/exe`)), 'all ended');
    const again = new Running(['run', '-c', config]);
    await again.says('peersync');
    const why = async (word: string) =>
      (await peersync(['why', join(directory, 'inbox', `${word}.pdf`), '-c', config])).stdout;
    for (const word of words)
      await until(async () => /waits for the peer/.test(await why(word)), `${word} is ready`);
    expect(pages()).toEqual(before);
    expect(childrenOf(again.child.pid)).toEqual([]);
    expect((await again.kill('SIGTERM')).code).toBe(0);
  }, 120_000);

  it('made to use up memory and time fail alone, and the daemon continues', async () => {
    const within = (bytes: Uint8Array, depth: number): Uint8Array =>
      depth === 0 ? bytes : within(eml(`depth ${depth}`, { name: 'in.eml', bytes }), depth - 1);
    const bomb = Buffer.alloc(1_000_000_000);
    const member = Buffer.concat(tarMember({ name: 'member' }));
    const nested = (depth: number): Uint8Array => {
      const content = depth === 0 ? Buffer.alloc(30_000_000, 'lies ') : nested(depth - 1);
      return zipSync(
        Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`${i}.zip`, content])),
      );
    };
    const began = performance.now();
    const { daemon, found, listed } = await daemonWith({
      'declared.docx': declaring(docx('bomb'), 'word/document.xml', 1_000_000_000),
      'lying.docx': declaring(
        zipped({ 'word/document.xml': 'lies '.repeat(10_000_000) }),
        'word/document.xml',
        100,
      ),
      'deep.docx': zipped({ 'word/document.xml': `${'<w:p>'.repeat(100_000)}<w:t>deep</w:t>` }),
      'page.pdf': pdfOf(deflateSync(bomb), '/Filter /FlateDecode'),
      'mail.eml': within(eml('innermost'), 12),
      'cells.xlsx': xlsx(Array.from({ length: 200_000 }, (_, i) => `cell${i}`)),
      'many.tar.gz': gzipSync(Buffer.alloc(1_000_000 * member.length, member), { level: 1 }),
      'zeros.tgz': gzipSync(Buffer.concat([...tarMember({ name: 'zeros', size: 8 ** 10 }), bomb])),
      'nested.zip': nested(3),
      'plain.md': Buffer.from('still alive'),
    });
    const seconds = (performance.now() - began) / 1000;
    expect(
      Object.fromEntries(listed.map(({ code, path, status }) => [path, code ?? status])),
    ).toEqual({
      'declared.docx': 'DOCUMENT_TOO_LARGE',
      'lying.docx': expect.stringMatching(/^(DOCUMENT_BROKEN|NO_WORDS)$/),
      'deep.docx': 'confirmed',
      'page.pdf': 'DOCUMENT_TOO_LARGE',
      'mail.eml': 'confirmed',
      'cells.xlsx': 'confirmed',
      'many.tar.gz': 'confirmed',
      'zeros.tgz': 'confirmed',
      'nested.zip': 'confirmed',
      'plain.md': 'confirmed',
    });
    expect(await found('cell199999')).toEqual(['cells.xlsx']);
    const most = mostMemory(daemon.child.pid);
    console.log(`most memory ${Math.round(most)} MB, ${seconds.toFixed(1)} s`);
    expect(most).toBeLessThan(1_500);
    expect((await daemon.kill('SIGTERM')).code).toBe(0);
  }, 240_000);
});
