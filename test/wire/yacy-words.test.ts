import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { PlainWords } from '../../src/content/words.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import { rewritten, wayOf } from '../../src/uplink/documents.js';
import { docx } from '../content/documents.js';
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
const NUMBERS = ['&#228;', '&#x3c;', '&#0062;', '&#x00E9;', '&#65535;', '&#xfffe;', '&#7;', '&#128512;'];

/** What a reader of the text takes for its words: entities are what they stand for, and those that stand for nothing keep their names. */
function wordsRead(text: string): string[] {
  const decoded = text.replace(
    /&(?:amp;)*(?:([A-Za-z]+)|#([xX]?)([0-9a-fA-F]+));/g,
    (_, name, hex, digits) =>
      name === undefined
        ? String.fromCodePoint(Number.parseInt(digits, hex === '' ? 10 : 16))
        : (ENTITIES[`&${name};`] ?? `&${name};`),
  );
  return wordsOf(decoded);
}

const letters = fc.string({ unit: fc.constantFrom(...'abcdeüßŁ東1234'), minLength: 1, maxLength: 6 });
const control = fc.integer({ min: 0, max: 0x9f }).filter((code) => code < 0x20 || code > 0x7e);
const piece = fc.oneof(
  { weight: 4, arbitrary: letters },
  { weight: 2, arbitrary: fc.constantFrom(' ', '\n', ', ', '. ') },
  fc.constantFrom('<', '>', '</b>', '<b>', '<!--', '-->', '<script>', '<style', '"', "'", '&', ';', '&&'),
  fc.constantFrom(...Object.keys(ENTITIES), ...NUMBERS, '&amp;lt;', '&amp;amp;gt;'),
  control.map((code) => String.fromCharCode(code)),
  fc.constantFrom('\ufffe', '\uffff', '\ufeff', '\u200b', '\u2039', '😀', '\u{1fffe}', '\ufffd'),
  fc.string({ unit: 'binary', maxLength: 4 }),
);

it('any text is findable by each of its words, of which the peer counts no fewer than were counted here', () => {
  const isWhole = (pieces: readonly string[]) => {
    const text = pieces.join('');
    const { rewriting, type } = wayOf('note.txt', 'utf-8', Buffer.from(text), DIALECTS.yacy.content);
    const sent = Buffer.from(rewritten(Buffer.from(text), rewriting));
    const { title = '', text: indexed = '' } = parse('http://notes.example.org/note.txt', type, sent) ?? {};
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
  it('without a word are skipped at once, and stay so', async () => {
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
    expect(world.asked('/api/push_p').flatMap(({ urls }) => urls)).toEqual([world.url('notes/words.txt')]);
    const why = await world.run('why', join(world.directory, 'notes/frame.html'));
    expect(why.stdout).toContain('no word in the file');
  });
});

describe('a text of which the peer indexed no word', () => {
  const words = 'quarterly figures of the harbour master with tonnage by month and berth';

  it('is never confirmed, and ends in quarantine with just that reason after one push', async () => {
    const world = await YacyWorld.start();
    // Nothing of HTML is replaced but what ends an update, and a control character drops the text of a page as well.
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
  it('travels as it is, and as its text where the folder wants that, with no tag in it', async () => {
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
