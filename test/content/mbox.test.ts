import { expect, it } from 'vitest';
import {
  MEMBER_LIMITS,
  MemberBudget,
  type MemberLimits,
} from '../../src/content/readers/budget.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { documentKind, isNameOfTextDocument } from '../../src/content/signatures.js';
import { docx, eml } from './documents.js';

const message = (subject: string, body: string) =>
  `From ada@example.org Mon Feb  3 04:05:06 2025\nFrom: ada@example.org\nSubject: ${subject}\n\n${body}\n\n`;
const folder = (...messages: readonly string[]) => Buffer.from(messages.join(''));
const limitedText = async (bytes: Uint8Array, limits: Partial<MemberLimits>) => {
  const budget = new MemberBudget({ ...MEMBER_LIMITS, ...limits });
  return (await readDocument(bytes, 'a.mbox', { budget }))?.text ?? '';
};

it('reads a mail folder as one document, each message under its subject', async () => {
  const letter = eml('html words', { name: 'a.docx', bytes: docx('attached words') });
  const bytes = Buffer.concat([
    folder(message('First', 'one'), message('=?utf-8?q?Gr=C3=BC=C3=9Fe?=', 'two')),
    Buffer.from('From - Mon Feb  3 04:05:06 2025\r\n'),
    letter,
  ]);
  expect(await readDocument(bytes, 'archive.mbox')).toEqual({
    reader: 'mbox',
    title: 'archive.mbox',
    text: [
      'First\nFrom: ada@example.org\n\none',
      'Grüße\nFrom: ada@example.org\n\ntwo',
      'Brücke\nFrom: Ada Lovelace <ada@example.org>\nTo: bob@example.org\n\nhtml words\n\na.docx\nMinutes & more\nattached words\nleft\tright\nbelow\na footnote',
    ].join('\n\n'),
  });
});

it('begins a message only at a line "From " after an empty one, and unquotes that line elsewhere', async () => {
  const body = 'Hello\nFrom here on\n\n>From there\n>>From quoted\n>not quoted';
  const { text } =
    (await readDocument(folder(message('A', body), message('B', 'end')), 'mbox')) ?? {};
  expect(text).toBe(
    'A\nFrom: ada@example.org\n\nHello\nFrom here on\n\nFrom there\n>From quoted\n>not quoted\n\nB\nFrom: ada@example.org\n\nend',
  );
});

it.each([
  ['a.mbox', message('A', 'words'), 'mbox'],
  ['mail/mbox', message('A', 'words'), 'mbox'],
  ['a.mbox', 'From my notes\nnothing else\n', undefined],
  ['mbox', '# a list of words', undefined],
  ['a.txt', message('A', 'words'), undefined],
])('%s that begins with %j is %s', (name, begin, kind) => {
  expect(isNameOfTextDocument(`/inbox/${name}`)).toBe(name !== 'a.txt');
  expect(documentKind(`/inbox/${name}`, Buffer.from(begin))).toBe(kind);
});

it.each<[string, Partial<MemberLimits>, string]>([
  [
    'messages',
    { messages: 1 },
    'A\nFrom: ada@example.org\n\none\n\nA part is left out here. There are more than 1 message.',
  ],
  [
    'bytes of a message',
    { memberBytes: 60 },
    'A\nFrom: ada@example.org\n\none\n\nA part is left out here. Messages of more than 60 B are left out.',
  ],
  [
    'text',
    { textBytes: 10 },
    'A\nFrom:\n\nA part is left out here. There are more than 10 B of text.',
  ],
  ['time', { cpuMs: -1_000 }, 'A part is left out here. Reading took longer than -1 s.'],
])('cuts a large folder off, and says so: %s', async (_what, limits, expected) => {
  const bytes = folder(message('A', 'one'), message('B', 'two '.repeat(30)));
  expect((await limitedText(bytes, limits)).trim()).toBe(expected);
});
