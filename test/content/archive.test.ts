import { gzipSync } from 'node:zlib';
import { strToU8, zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import {
  MEMBER_LIMITS,
  MemberBudget,
  type MemberLimits,
} from '../../src/content/readers/budget.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { documentKind } from '../../src/content/signatures.js';
import { cpuMs } from '../support/cpu.js';
import { declaring, docx, eml, epub, pdf, zipped } from './documents.js';
import { encoded, LEGACY_TEXTS } from './legacy-texts.js';
import { pax, tar, tarMember } from './tar.js';

const textOf = async (bytes: Uint8Array, name = 'a.zip') =>
  (await readDocument(bytes, name))?.text ?? '';
const limited = async (bytes: Uint8Array, limits: Partial<MemberLimits>, name = 'a.zip') => {
  const budget = new MemberBudget({ ...MEMBER_LIMITS, ...limits });
  const { found, text } = (await readDocument(bytes, name, { budget })) ?? {};
  return { text, leftOut: found?.leftOut };
};

/** Returns the ZIP with bits of the general flags set in the directory, for one member. */
function flagged(zip: Uint8Array, name: string, flags: number): Uint8Array {
  const changed = Buffer.from(zip);
  const at = changed.lastIndexOf(name) - 46;
  changed.writeUInt16LE(changed.readUInt16LE(at + 8) | flags, at + 8);
  return changed;
}

/** Returns the ZIP with a name of its directory replaced by bytes of the same number. */
function renamed(zip: Uint8Array, name: string, bytes: Uint8Array): Uint8Array {
  const changed = Buffer.from(zip);
  Buffer.from(bytes).copy(changed, changed.lastIndexOf(name));
  return changed;
}

describe('an archive is one document', () => {
  const members = {
    'notes/today.txt': strToU8('oak and beech'),
    'notes/latin.txt': Buffer.from('Grüße aus Köln', 'latin1'),
    'page.html': strToU8('<title>Elm</title><script>no()</script><p>under the elm'),
    'report.pdf': pdf('words of a PDF'),
    'letter.docx': docx('words of a letter'),
    'mail.eml': eml('words of a message', {
      name: 'in.zip',
      bytes: zipped({ 'x.txt': 'attached' }),
    }),
    'photo.jpg': Buffer.from('\xff\xd8\xff\xe0\0\0', 'latin1'),
  };
  const asTar = tar(...Object.entries(members).map(([name, content]) => ({ name, content })));
  it.each([
    ['a.zip', zipSync(members), 'archive'],
    ['a.tar', asTar, 'archive'],
    ['a.tar.gz', gzipSync(asTar), 'archive'],
    ['a.tgz', gzipSync(asTar), 'archive'],
  ])('%s, with the names and the texts of its members', async (name, bytes, reader) => {
    const read = await readDocument(bytes, name);
    expect(read).toMatchObject({ reader, title: name });
    expect(read?.text).toBe(
      [
        'notes/today.txt\noak and beech',
        'notes/latin.txt\nGrüße aus Köln',
        'page.html\nElm\nunder the elm',
        'report.pdf\nMinutes\nwords of a PDF',
        'letter.docx\nMinutes & more\nwords of a letter\nleft\tright\nbelow\na footnote',
        'mail.eml\nBrücke\nFrom: Ada Lovelace <ada@example.org>\nTo: bob@example.org\n\nwords of a message\n\nin.zip\n\nx.txt\nattached',
        'photo.jpg',
      ].join('\n\n'),
    );
  });

  it('and so are the archives in it', async () => {
    const inner = tar({ name: 'deep.txt', content: 'deep words' });
    const outer = zipSync({
      'in.tar': inner,
      'in.zip': zipped({ 'b.txt': 'b' }),
      'z.txt': strToU8('z'),
    });
    expect(await textOf(outer)).toBe(
      'in.tar\n\nin.tar/deep.txt\ndeep words\n\nin.zip\n\nin.zip/b.txt\nb\n\nz.txt\nz',
    );
  });

  it.each([
    ['a.jar', undefined],
    ['a.apk', undefined],
    ['a.whl', undefined],
    ['a', undefined],
    ['a.ZIP', 'archive'],
  ])('if its name says so: %s', (name, kind) => {
    expect(documentKind(name, zipped({ 'a.txt': 'a' }))).toBe(kind);
  });

  it('unless it is an office document, whatever its name; one that holds office documents is', () => {
    expect(documentKind('a.zip', docx('words'))).toBe('word');
    const holding = zipSync({ 'a.docx': [docx('words'), { level: 0 }] });
    expect(documentKind('a.zip', holding)).toBe('archive');
    const book = zipped({ mimetype: 'application/epub+zip' });
    expect(documentKind('a.zip', zipSync({ 'a.epub': [book, { level: 0 }] }))).toBe('archive');
  });
});

describe('members', () => {
  it('that are encrypted or packed in an unknown way have their names', async () => {
    const zip = flagged(zipped({ 'a.txt': 'plain', 'secret.txt': 'hidden' }), 'secret.txt', 1);
    expect(await textOf(zip)).toBe('a.txt\nplain\n\nsecret.txt\n(encrypted)');
    const packed = Buffer.from(zipped({ 'a.txt': 'plain' }));
    packed.writeUInt16LE(14, packed.lastIndexOf('a.txt') - 46 + 10);
    expect(await textOf(packed)).toBe('a.txt\n(packed in a way that is not read here)');
    const letter = Buffer.from('d0cf11e0a1b11ae100', 'hex');
    expect(await textOf(zipSync({ 'a.docx': letter }))).toBe('a.docx\n(encrypted)');
  });

  it('that are damaged have their names, and the others their text', async () => {
    const zip = zipSync({ 'a.pdf': pdf('words').subarray(0, 200), 'b.txt': strToU8('words') });
    expect(await textOf(zip)).toBe('a.pdf\n(damaged)\n\nb.txt\nwords');
    const lying = declaring(zipped({ 'a.txt': 'lies '.repeat(10_000), 'b.txt': 'b' }), 'a.txt', 10);
    expect(await textOf(lying)).toBe('a.txt\n(damaged)\n\nb.txt\nb');
  });

  it.each([
    ['UTF-8 without a mark', Buffer.from('größe.txt'), 'größe.txt'],
    ['the encoding of DOS', Buffer.from('gr\x94\xe1e1.txt', 'latin1'), 'größe1.txt'],
  ])('have names in %s', async (_what, bytes, name) => {
    const place = 'x'.repeat(bytes.length);
    const zip = renamed(zipped({ [place]: 'words' }), place, bytes);
    expect(await textOf(zip)).toBe(`${name}\nwords`);
  });

  it('have their names as text, and never as paths', async () => {
    const names = ['/etc/passwd', '../../up.txt', 'C:\\dir\\a.txt', 'two\nlines.txt', './dot.txt'];
    const expected =
      'etc/passwd\nw\n\nup.txt\nw\n\nC:/dir/a.txt\nw\n\ntwo lines.txt\nw\n\ndot.txt\nw';
    expect(await textOf(zipped(Object.fromEntries(names.map((name) => [name, 'w']))))).toBe(
      expected,
    );
    expect(await textOf(tar(...names.map((name) => ({ name, content: 'w' }))), 'a.tar')).toBe(
      expected,
    );
  });

  it('that hold secrets, or that no folder takes by default, are kept out', async () => {
    const key = `-----BEGIN OPENSSH PRIVATE KEY-----\n${'abcd'.repeat(20)}\n`;
    const zip = zipped({
      'home/.ssh/config': 'hidden',
      'app/.env': 'hidden',
      'app/.git/config': 'hidden',
      'app/Node_Modules/x/a.txt': 'hidden',
      '__MACOSX/._a.txt': 'hidden',
      'note.txt': key,
      'a.txt': 'words',
    });
    expect(await textOf(zip)).toBe('note.txt\n(a private key, which is kept out)\n\na.txt\nwords');
  });

  it('that hold mail keep its secrets out, too', async () => {
    const key = `-----BEGIN PRIVATE KEY-----\n${'abcd'.repeat(20)}\n`;
    const zip = zipSync({
      'a.eml': eml('words', { name: 'key.txt', bytes: Buffer.from(key) }),
      'b.eml': eml('words', { name: '.env', bytes: Buffer.from('PASSWORD=hidden') }),
      'c.eml': eml(key),
    });
    const text = await textOf(zip);
    expect(text).not.toMatch(/abcd|hidden/);
    expect(text.match(/\(a (secret|private key), which is kept out\)/g)).toHaveLength(3);
  });

  it('whose encoding is not recognised are named', async () => {
    const russian = LEGACY_TEXTS[0]?.[1] ?? '';
    const zip = zipSync({ 'a.txt': encoded(russian, 'ibm866') });
    expect(await textOf(zip)).toBe('a.txt\n(in an encoding that is not recognised)');
  });
});

describe('a tar file', () => {
  const long = `${'directory/'.repeat(20)}name.txt`;
  it.each([
    [
      'GNU',
      [
        { name: '././@LongLink', type: 'L', content: `${long}\0` },
        { name: long.slice(0, 100), content: 'w', magic: 'ustar  \0' },
      ],
    ],
    ['pax', [pax({ comment: 'ü', path: long }), { name: long.slice(0, 100), content: 'w' }]],
    [
      'ustar',
      [
        {
          name: 'directory/name.txt',
          prefix: 'directory/'.repeat(19).slice(0, -1).slice(0, 155),
          content: 'w',
        },
      ],
    ],
  ])('has long names in the format of %s', async (format, members) => {
    const expected =
      format === 'ustar' ? `${'directory/'.repeat(19).slice(0, 155)}/directory/name.txt` : long;
    expect(await textOf(tar(...members, { name: 'b.txt', content: 'b' }), 'a.tar')).toBe(
      `${expected}\nw\n\nb.txt\nb`,
    );
  });

  it('has only the names of links and devices, whatever size they declare', async () => {
    const bytes = tar(
      { name: 'd/', type: '5' },
      { name: 'soft', type: '2', link: '/etc/shadow', size: 8_000 },
      { name: 'hard', type: '1', link: '../../root', size: 8_000 },
      { name: 'device', type: '3' },
      { name: 'a.txt', content: 'words' },
    );
    expect(await textOf(bytes, 'a.tar')).toBe('soft\n\nhard\n\ndevice\n\na.txt\nwords');
  });

  it.each(['a.tar', 'a.tar.gz'])(
    'that is cut off has the text before that, and says so: %s',
    async (name) => {
      const whole = tar(
        { name: 'a.txt', content: 'first' },
        { name: 'b.txt', content: Buffer.alloc(9_000, 'b ') },
      );
      const cut =
        name === 'a.tar'
          ? whole.subarray(0, 3_000)
          : gzipSync(whole, { level: 0 }).subarray(0, 3_000);
      expect(await textOf(cut, name)).toBe(
        'a.txt\nfirst\n\nb.txt\n(cut off)\n\nA part is left out here. The archive is damaged after 2 members (cut off).',
      );
    },
  );

  it('that is damaged says where', async () => {
    const bytes = tar({ name: 'a.txt', content: 'first' }, { name: 'b.txt', content: 'second' });
    bytes[1_024] = 0x78;
    expect(await textOf(bytes, 'a.tar')).toBe(
      'a.txt\nfirst\n\nA part is left out here. The archive is damaged after 1 member (a header is damaged).',
    );
    await expect(
      readDocument(Buffer.concat([Buffer.from(gzipSync('no archive'))]), 'a.tgz'),
    ).rejects.toMatchObject({
      code: 'DOCUMENT_BROKEN',
      message: 'No text can be read from the file: it is damaged (cut off).',
    });
  });
});

describe('an archive that would take too much', () => {
  const three = zipped({ 'a.txt': 'one', 'b.txt': 'two', 'c.txt': 'three' });
  const CUT = 'A part is left out here.';
  it.each<[string, Partial<MemberLimits>, string]>([
    [
      'members',
      { members: 2 },
      `a.txt\none\n\nb.txt\ntwo\n\n${CUT} There are more than 2 members.`,
    ],
    [
      'bytes of a member',
      { memberBytes: 4 },
      `a.txt\none\n\nb.txt\ntwo\n\nc.txt\n(too large)\n\n${CUT} Members of more than 4 B give only their names.`,
    ],
    [
      'bytes',
      { bytes: 7 },
      `a.txt\none\n\nb.txt\ntwo\n\nc.txt\n\n${CUT} It unpacks to more than 7 B.`,
    ],
    ['text', { textBytes: 16 }, `a.txt\none\n\nb.\n\n${CUT} There are more than 16 B of text.`],
    ['time', { cpuMs: -1_000 }, `a.txt\n\nb.txt\n\nc.txt\n\n${CUT} Reading took longer than -1 s.`],
  ])('is cut off, and says so: %s', async (_what, limits, expected) => {
    const { leftOut, text } = await limited(three, limits);
    expect(text).toBe(expected);
    expect(leftOut).toBe(expected.slice(expected.indexOf(CUT) + CUT.length + 1));
  });

  it('by its depth is opened to a depth of 3', async () => {
    const nest = (depth: number): Uint8Array =>
      depth === 0 ? zipped({ 'in.txt': 'innermost' }) : zipSync({ 'in.zip': nest(depth - 1) });
    expect(await textOf(nest(3))).toMatch(/in\.txt\ninnermost$/);
    expect(await textOf(nest(4))).toMatch(
      /\(not opened\)\n\nA part is left out here. Archives within 3 others give only their names\.$/,
    );
  });

  it('by all that is nested in it shares one limit', async () => {
    const bomb = zipped({ 'a.txt': 'a'.repeat(300), 'b.txt': 'b'.repeat(300) });
    const bombs = zipSync({ '1.zip': bomb, '2.zip': bomb, '3.zip': bomb });
    const { text } = await limited(bombs, { bytes: 2_000 });
    expect(text?.match(/a{300}|b{300}/g)?.length).toBeLessThan(6);
    expect(text).toMatch(/It unpacks to more than 2 KiB\.$/);
  });

  it.each<[string, Partial<MemberLimits>, string]>([
    ['bytes', { bytes: 700 }, 'It unpacks to more than 700 B.'],
    ['members', { members: 3 }, 'There are more than 3 members.'],
    ['text', { textBytes: 700 }, 'There are more than 700 B of text.'],
    ['time', { cpuMs: -1_000 }, 'Reading took longer than -1 s.'],
  ])(
    'by what several archives of one mail folder take shares one limit: %s',
    async (_, limits, leftOut) => {
      const words = zipped({ 'a.txt': 'a'.repeat(300), 'b.txt': 'b'.repeat(300) });
      const letter = eml('words', { name: 'in.zip', bytes: words });
      const from = Buffer.from('From ada@example.org Mon Feb  3 04:05:06 2025\n');
      const folder = Buffer.concat([from, letter, Buffer.from('\n'), from, letter]);
      const cut = await limited(folder, limits, 'a.mbox');
      expect(cut.leftOut).toBe(leftOut);
      expect(cut.text?.match(/a{300}|b{300}/g)?.length ?? 0).toBeLessThan(4);
      const { leftOut: none, text } = await limited(folder, { textBytes: 2_000 }, 'a.mbox');
      expect([text?.match(/a{300}|b{300}/g)?.length, none]).toEqual([4, undefined]);
    },
  );

  it.each([
    ['pages of a PDF', 'a.pdf', pdf('page one', 'page two', 'page three')],
    [
      'attachments of a message',
      'a.eml',
      Buffer.from(
        `From: a@b\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=x\n\n${[
          'one',
          'two',
          'three',
        ]
          .map(
            (word) =>
              `--x\nContent-Type: text/csv; name=a.csv\nContent-Disposition: attachment\n\npage ${word}\n`,
          )
          .join('')}--x--`,
      ),
    ],
    ['chapters of a book', 'a.epub', epub('page three', 'page two', 'page one')],
  ])('of time ends in the middle of a long member: %s', async (_, name, bytes) => {
    const budget = new MemberBudget();
    // The member begins, and two parts of it are read.
    let left = 3;
    budget.hasTime = () => {
      left -= 1;
      if (left < 0) budget.cuts.add(budget.lateness);
      return left >= 0;
    };
    const read = await readDocument(zipSync({ [name]: bytes }), 'a.zip', { budget });
    expect(read?.text.match(/page \w+/g)).toEqual(['page one', 'page two']);
    expect(read?.text).toMatch(/A part is left out here\. Reading took longer than 40 s\.$/);
    expect(read?.found?.leftOut).toBe('Reading took longer than 40 s.');
  });

  it('by members that share their bytes is not unpacked again and again', async () => {
    const zip = Buffer.from(zipSync({ 'a.txt': [strToU8('word '.repeat(200)), { level: 0 }] }));
    const [directory, end] = [zip.lastIndexOf('PK\x01\x02'), zip.lastIndexOf('PK\x05\x06')];
    const entries = Buffer.concat(Array(20).fill(zip.subarray(directory, end)));
    const record = Buffer.from(zip.subarray(end));
    record.writeUInt32LE(entries.length, 12);
    const text = await textOf(Buffer.concat([zip.subarray(0, directory), entries, record]));
    expect(text.match(/a\.txt\nword/g)).toHaveLength(2);
    expect(text.match(/a\.txt\n\(it shares its bytes with other members\)/g)).toHaveLength(18);
  });

  it('has a million members: only so many are read, within moments', async () => {
    const member = Buffer.concat(tarMember({ name: 'x'.repeat(90) }));
    const many = gzipSync(Buffer.alloc(1_000_000 * member.length, member), { level: 1 });
    const read = async () => {
      const text = await textOf(many, 'a.tar.gz');
      expect(text).toMatch(/There are more than 10,000 members\.$/);
    };
    expect(await cpuMs(read)).toBeLessThan(5_000);
  });

  it('is a tar.gz of zeros: it is unpacked to 512 MiB', async () => {
    const zeros = gzipSync(
      Buffer.concat(tarMember({ name: 'zeros', size: 8 ** 11 - 1, content: Buffer.alloc(1) })),
    );
    const endless = Buffer.concat([zeros, ...Array(60).fill(gzipSync(Buffer.alloc(10_000_000)))]);
    expect(await textOf(endless, 'a.tgz')).toBe(
      'zeros\n(too large)\n\nA part is left out here. Members of more than 32 MiB give only their names. It unpacks to more than 512 MiB.',
    );
  });
});
