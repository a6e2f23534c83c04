import { join } from 'node:path';
import fc from 'fast-check';
import mime from 'mime';
import { describe, expect, it, vi } from 'vitest';
import { PlainWords } from '../../src/content/words.js';
import { PeerClient } from '../../src/peer/client.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { rewritten, uploadPlanOf } from '../../src/uplink/upload-plan.js';
import { docx, eml, epub, openDocument, pdf, pptx, rtf, xlsx } from '../content/documents.js';
import { parse } from './yacy/parser.js';
import { wordsOf } from './yacy/push.js';
import { YacyWorld } from './yacy/yacy-world.js';

/** Confirmed means findable by its words: what a YaCy does to text, against the model of one. */

vi.setConfig({ testTimeout: 240_000 });

const ENTITIES: Readonly<Record<string, string>> = {
  '&uuml;': 'ü',
  '&Auml;': 'Ä',
  '&szlig;': 'ß',
  '&nbsp;': ' ',
  '&copy;': '©',
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
};
const NUMBERS = [
  '&#228;',
  '&#x3c;',
  '&#0062;',
  '&#x00E9;',
  '&#65535;',
  '&#xfffe;',
  '&#7;',
  '&#128512;',
];

// biome-ignore lint/suspicious/noControlCharactersInRegex: what only terminals understand begins with one.
const SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*([@-~])|\][^\x00-\x1f]*(?:\x07|\x1b\\)|[()][0AB])/g;

/**
 * Returns the words that a reader sees in the text. Known entities are decoded, and unknown ones
 * keep their names.
 */
function wordsRead(text: string): string[] {
  const shown = text.replace(SEQUENCE, (_, final = 'm') => (/[mK]/.test(final) ? '' : ' '));
  const decoded = shown.replace(
    /&(?:amp;)*(?:([A-Za-z]+)|#([xX]?)([0-9a-fA-F]+));/g,
    (_, name, hex, digits) =>
      name === undefined
        ? String.fromCodePoint(Number.parseInt(digits, hex === '' ? 10 : 16))
        : (ENTITIES[`&${name};`] ?? `&${name};`),
  );
  return wordsOf(decoded);
}

const letters = fc.string({
  unit: fc.constantFrom(...'abcdeüßŁ東1234'),
  minLength: 1,
  maxLength: 6,
});
const control = fc.integer({ min: 0, max: 0x9f }).filter((code) => code < 0x20 || code > 0x7e);
const piece = fc.oneof(
  { weight: 4, arbitrary: letters },
  { weight: 2, arbitrary: fc.constantFrom(' ', '\n', ', ', '. ') },
  fc.constantFrom(
    '<',
    '>',
    '</b>',
    '<b>',
    '<!--',
    '-->',
    '<script>',
    '<style',
    '"',
    "'",
    '&',
    ';',
    '&&',
  ),
  fc.constantFrom(...Object.keys(ENTITIES), ...NUMBERS, '&amp;lt;', '&amp;amp;gt;'),
  control.map((code) => String.fromCharCode(code)),
  fc.constantFrom('\ufffe', '\uffff', '\ufeff', '\u200b', '\u2039', '😀', '\u{1fffe}', '\ufffd'),
  fc.constantFrom(
    '\x1b[31m',
    '\x1b[0m',
    '\x1b[K',
    '\x1b[2J',
    '\x1b]0;a b\x07',
    '\x1b]',
    '\x1b[',
    '\x1b(B',
  ),
  fc.string({ unit: 'binary', maxLength: 4 }),
);

it('any text is findable by each of its words, of which the peer counts no fewer than were counted here', () => {
  const isWhole = (pieces: readonly string[]) => {
    const text = pieces.join('');
    const { rewriting, type } = uploadPlanOf(
      'note.txt',
      'utf-8',
      Buffer.from(text),
      DIALECTS.yacy.content,
    );
    const sent = Buffer.from(rewritten(Buffer.from(text), rewriting));
    const { title = '', text: indexed = '' } =
      parse('http://notes.example.org/note.txt', type, sent) ?? {};
    const found = new Set(wordsOf(`${title} ${indexed}`));
    const missing = wordsRead(text).filter((word) => !found.has(word));
    expect([text, sent.toString(), missing]).toEqual([text, sent.toString(), []]);
    expect(indexed).not.toMatch(/[\ufffe\uffff]/);
    const counter = new PlainWords();
    counter.write(sent);
    expect(indexed.split(' ').length).toBeGreaterThanOrEqual(counter.end() ?? 0);
  };
  fc.assert(fc.property(fc.array(piece, { maxLength: 60 }), isWhole), { numRuns: 3_000 });
});

describe('files', () => {
  it('without a word are skipped at once, and stay skipped', async () => {
    const world = await YacyWorld.start();
    world.write('notes/blank.txt', ' \n\t\n');
    world.write('notes/marks.md', '--- *** ---\n');
    world.write(
      'notes/frame.html',
      '<html><head><style>p{}</style></head><body><img src="a.png"></body></html>',
    );
    world.write('notes/words.txt', 'one word');
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(await world.run('once')).toMatchObject({ code: 0 });
    expect(await world.statuses()).toEqual({
      'notes/blank.txt': 'skipped',
      'notes/marks.md': 'skipped',
      'notes/frame.html': 'skipped',
      'notes/words.txt': 'confirmed',
    });
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toEqual([
      world.url('notes/words.txt'),
    ]);
    const why = await world.run('why', join(world.directory, 'notes/frame.html'));
    expect(why.stdout).toContain('no word in the file');
  });
});

const words = 'quarterly figures of the harbour master with tonnage by month and berth';

describe('a text of which the peer indexed no word', () => {
  it('is never confirmed, and ends in quarantine with that reason after one push', async () => {
    const world = await YacyWorld.start();
    // Nothing of HTML is replaced but what ends an update, and a control character drops the text
    // of a page as well.
    world.write('notes/page.html', `<p>${words}\x01</p>`);
    world.write('notes/other.html', `<p>${words}</p>`);
    expect(await world.run('once')).toMatchObject({ code: 3 });
    expect(await world.statuses()).toEqual({
      'notes/page.html': 'quarantined',
      'notes/other.html': 'confirmed',
    });
    const why = await world.run('why', join(world.directory, 'notes/page.html'));
    expect(why.stdout).toContain('indexed none of its text');
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toHaveLength(2);
  });
});

describe('a document', () => {
  it('whose text the peer drops is never confirmed, even if it is sent unchanged', async () => {
    const world = await YacyWorld.start();
    // The model of the peer knows one operator that shows text, and this is another.
    const lost = Buffer.from(pdf(words)).toString('latin1').replace(' Tj ET', "  '  ET");
    world.write('notes/lost.pdf', Buffer.from(lost, 'latin1'));
    world.write(
      'notes/short.pdf',
      Buffer.from(lost.replace(words, 'few'.padEnd(words.length)), 'latin1'),
    );
    world.write('notes/broken.pdf', Buffer.from(pdf(words)).subarray(0, 300));
    world.write('notes/whole.pdf', pdf(words));
    expect(await world.run('once')).toMatchObject({ code: 3 });
    expect(await world.statuses()).toEqual({
      'notes/lost.pdf': 'quarantined',
      // Too few words, or a document that cannot be read here, prove nothing.
      'notes/short.pdf': 'confirmed',
      'notes/broken.pdf': 'confirmed',
      'notes/whole.pdf': 'confirmed',
    });
    const why = await world.run('why', join(world.directory, 'notes/lost.pdf'));
    expect(why.stdout).toContain('indexed none of its text');
    expect(why.stdout).toContain('"extract": "always"');
    expect(world.peer.kept(world.url('notes/lost.pdf'))?.contentType).toBe('application/pdf');
  });

  it('that the peer reads badly, and that cannot be read here, is not confirmed', async () => {
    const world = await YacyWorld.start();
    world.write('notes/broken.xlsx', Buffer.from(xlsx(['oak', 'beech'])).subarray(0, 200));
    world.write('notes/empty.epub', epub(''));
    expect(await world.run('once')).toMatchObject({ code: 3 });
    expect(await world.statuses()).toEqual({
      'notes/broken.xlsx': 'quarantined',
      'notes/empty.epub': 'skipped',
    });
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toEqual([]);
  });

  it('is sent unchanged, or as plain text if the folder is set so', async () => {
    const world = await YacyWorld.start({
      folders: { plain: 'http://plain.example.org/', text: 'http://text.example.org/' },
      each: { text: { extract: 'always' } },
    });
    const bytes = docx('Eichenholz <b>& Buche</b> \u0007 &uuml;');
    for (const folder of ['plain', 'text']) world.write(`${folder}/a.docx`, bytes);
    expect((await world.run('once')).code).toBe(0);
    const served = (name: string) => world.peer.kept(world.url(`${name}/a.docx`));
    expect(served('plain')?.contentType).toMatch(/wordprocessingml/);
    expect(served('text')).toMatchObject({
      contentType: 'text/html; charset=UTF-8',
      title: 'Minutes ＆ more',
    });
    expect(served('text')?.text).toContain('Eichenholz ‹b›＆ Buche‹/b› ü');
  });
});

/** Files of each type, each with 26 words that are in no other file. */
const FILES = 4;
const WORDS = 26;
const lines = (all: readonly string[], length = 9) =>
  Array.from({ length: Math.ceil(all.length / length) }, (_, i) =>
    all.slice(i * length, (i + 1) * length).join(' '),
  );
const TYPES: Readonly<Record<string, (all: readonly string[]) => Uint8Array>> = {
  txt: (all) => Buffer.from(lines(all).join('\n')),
  log: (all) => Buffer.from(all.map((word) => `\x1b[31m${word}\x1b[0m`).join(' ')),
  html: (all) =>
    Buffer.from(
      lines(all)
        .map((line) => `<p>${line}</p>`)
        .join('\n'),
    ),
  eml: (all) => eml(lines(all).join('\r\n')),
  epub: (all) => epub(...lines(all)),
  xlsx: (all) => xlsx(all),
  pptx: (all) => pptx(...lines(all, 3)),
  docx: (all) => docx(...lines(all)),
  odt: (all) => openDocument('text', ...lines(all)),
  rtf: (all) => rtf(lines(all).join('\\par ')),
  pdf: (all) => pdf(...lines(all)),
};
/** Returns words of letters only, so that no tokenizer splits them. */
const wordsIn = (type: string, n: number) =>
  Array.from(
    { length: WORDS },
    (_, i) => `rare${type}${[n, i].map((x) => String.fromCharCode(97 + x)).join('')}`,
  );

it('every word of every type is found, and types that the peer reads badly are only those known', async () => {
  const world = await YacyWorld.start();
  const client = new PeerClient({ baseUrl: world.peer.url, dialect: 'yacy' });
  const rawUrl = (type: string, n: number) => `http://raw.example.org/${n}.${type}`;
  for (const [type, make] of Object.entries(TYPES))
    for (let n = 0; n < FILES; n += 1) {
      const bytes = make(wordsIn(type, n));
      world.write(`notes/${n}.${type}`, bytes);
      const contentType = mime.getType(type) ?? 'text/plain';
      await client.push([
        { url: rawUrl(type, n), collection: 'raw', data: Buffer.from(bytes), contentType },
      ]);
    }
  expect(await world.run('once')).toMatchObject({ code: 0 });
  const found = (type: string, urlOf: (type: string, n: number) => string) => {
    let count = 0;
    for (let n = 0; n < FILES; n += 1) {
      const { text = '', title = '' } = world.peer.kept(urlOf(type, n)) ?? {};
      const all = new Set(wordsOf(`${title} ${text}`));
      count += wordsIn(type, n).filter((word) => all.has(word)).length;
    }
    return count;
  };
  const table = Object.keys(TYPES).map((type) => ({
    type,
    of: FILES * WORDS,
    raw: found(type, rawUrl),
    auto: found(type, (_, n) => world.url(`notes/${n}.${type}`)),
  }));
  console.table(table);
  const column = (name: 'raw' | 'auto') =>
    Object.fromEntries(table.map((row) => [row.type, row[name]]));
  const all = FILES * WORDS;
  expect(column('auto')).toEqual(Object.fromEntries(Object.keys(TYPES).map((type) => [type, all])));
  expect(column('raw')).toMatchObject({
    log: 0,
    eml: 0,
    epub: 0,
    xlsx: 0,
    docx: all,
    odt: all,
    rtf: all,
    pdf: all,
  });
  expect(column('raw').pptx).toBeLessThan(all);
});
