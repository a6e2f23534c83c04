import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { expect, it, onTestFinished } from 'vitest';
import { type Command, NO_PROGRAMS } from '../../src/content/helpers/programs.js';
import { Tools } from '../../src/content/helpers/tools.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { temporaryDirectory } from '../support/temp.js';
import { eml } from './documents.js';

/** The beginning of old office documents. */
const OLE = Buffer.from('d0cf11e0a1b11ae1', 'hex');
const POSTSCRIPT = Buffer.from('%!PS-Adobe-3.0\n');

function toolsWith(commands: Readonly<Record<string, Command>>): Tools {
  const tools = new Tools({ ...NO_PROGRAMS, commands }, temporaryDirectory());
  onTestFinished(() => tools.close());
  return tools;
}

/** A program that is a script of the shell. */
function script(text: string, command: Partial<Command> = {}): Command {
  const program = join(temporaryDirectory(), 'program');
  writeFileSync(program, `#!/bin/sh\n${text}\n`);
  chmodSync(program, 0o755);
  return { program, name: 'catdoc', args: ['-w', '{file}'], output: 'text', ...command };
}

it('the text of an old document is what the program writes', async () => {
  const tools = toolsWith({
    '.doc': script('echo "$1"; tail -c +9 "$2"; printf "\\fsecond page"'),
  });
  const read = await readDocument(Buffer.concat([OLE, Buffer.from('Grüße')]), 'a letter.DOC', {
    tools,
  });
  expect(read).toMatchObject({ reader: 'catdoc', text: '-w\nGrüße\n\nsecond page' });
});

it('the name of the file never reaches the program', async () => {
  const tools = toolsWith({
    '.doc': script('basename "$2"; case "$2" in /*) echo absolute;; esac'),
  });
  const read = await readDocument(OLE, '-rf;$(x)\n.doc', { tools });
  expect(read?.text).toBe('document.doc\nabsolute');
});

it('a message that a program writes is read like any other', async () => {
  const message = join(temporaryDirectory(), 'message');
  writeFileSync(message, eml('words of the message'));
  const tools = toolsWith({ '.msg': script(`cat ${message}`, { output: 'mail' }) });
  const read = await readDocument(OLE, 'a.msg', { tools });
  expect(read?.text).toContain('words of the message');
  expect(read?.text).not.toContain('Content-Type');
});

it.each([
  ['in Latin-1 beside a body in UTF-8', 'Grüße', (text: string) => Buffer.from(text, 'latin1')],
  [
    'in UTF-8 with a body that is encoded twice',
    'Grüße – an alle',
    (text: string) => Buffer.from(text),
  ],
])('a message with a subject %s is repaired', async (_what, subject, encode) => {
  const body = 'Ein Öl für 5 €';
  const message = join(temporaryDirectory(), 'message');
  // Each character of the body stands for a byte, as in the program.
  const bytes = Buffer.from(body).toString('latin1');
  const head = 'Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit';
  writeFileSync(message, encode(`${head}\nSubject: ${subject}\nFrom: a@b.c\n\n${bytes}\n`));
  const tools = toolsWith({ '.msg': script(`cat ${message}`, { output: 'mail' }) });
  const read = await readDocument(OLE, 'a.msg', { tools });
  expect(read).toMatchObject({ title: subject, text: expect.stringContaining(body) });
});

it('a program of the configuration reads files that have a reader, and text', async () => {
  const tools = toolsWith({ '.eml': script('echo mine', { isConfigured: true, name: 'mine' }) });
  expect(await readDocument(Buffer.from(eml('x')), 'a.eml', { tools })).toMatchObject({
    reader: 'mine',
    text: 'mine',
  });
});

it('a member of an archive is read by a program', async () => {
  const tools = toolsWith({ '.doc': script('echo "words within"') });
  const archive = zipSync({ 'old.doc': OLE, 'x.txt': Buffer.from('text') });
  const read = await readDocument(archive, 'a.zip', { tools });
  expect(read?.text).toBe('old.doc\nwords within\n\nx.txt\ntext');
});

it.each([
  ['a.doc', OLE, 'an old Word document (.doc)', 'catdoc', 'catdoc'],
  ['a.msg', OLE, 'an Outlook message (.msg)', 'msgconvert', 'libemail-outlook-message-perl'],
  ['a.ps', POSTSCRIPT, 'a PostScript file (.ps)', 'ps2txt', 'ghostscript'],
  ['x', POSTSCRIPT, 'a PostScript file (.ps)', 'ps2txt', 'ghostscript'],
  ['x.doc', POSTSCRIPT, 'a PostScript file (.ps)', 'ps2txt', 'ghostscript'],
])(
  '%s without its program is told with the line that installs it',
  async (name, bytes, type, program, debian) => {
    await expect(readDocument(bytes, name, { tools: toolsWith({}) })).rejects.toMatchObject({
      code: bytes === POSTSCRIPT ? 'NO_HELPER_BY_CONTENT' : 'NO_HELPER',
      message: `The file is ${type}, and the program that reads it is not installed (${program}).`,
      hint: `Install it: \`sudo apt-get install ${debian}\`. The file is then taken up by itself.`,
    });
  },
);

it('a program of the configuration that is missing is told by its name', async () => {
  const { program: _, ...missing } = script('', { isConfigured: true, name: 'dwg2text' });
  const reading = readDocument(Buffer.from('AC1032'), 'a.dwg', {
    tools: toolsWith({ '.dwg': missing }),
  });
  await expect(reading).rejects.toMatchObject({
    code: 'NO_HELPER',
    message: expect.stringContaining('(dwg2text)'),
    hint: expect.stringContaining('documents.commands'),
  });
});

it('the programs that an archive lacks are recorded, and those that fail are not', async () => {
  const { program: _, ...missing } = script('', { isConfigured: true, name: 'dwg2text' });
  const tools = toolsWith({ '.doc': script('exit 1'), '.dwg': missing });
  const zip = zipSync({ 'a.doc': OLE, 'b.dwg': POSTSCRIPT, 'c.ps': POSTSCRIPT, 'd.xls': OLE });
  const read = await readDocument(zip, 'a.zip', { tools });
  expect([...tools.lacks]).toEqual(['time', '.dwg', '.ps', '.xls']);
  expect(read?.text).toContain('(an old Excel workbook (.xls), and the program that reads it is');
});

it('a program whose output is no text is the reason of the document', async () => {
  const tools = toolsWith({ '.doc': script('printf "\\377\\000\\001\\002\\003"') });
  await expect(readDocument(OLE, 'a.doc', { tools })).rejects.toMatchObject({
    code: 'DOCUMENT_BROKEN',
    message: 'No text can be read from the file: catdoc writes no text.',
  });
});

it('a program that fails is the reason of the document', async () => {
  const tools = toolsWith({ '.doc': script('echo "not a Word file" >&2; exit 1') });
  await expect(readDocument(OLE, 'a.doc', { tools })).rejects.toMatchObject({
    code: 'DOCUMENT_BROKEN',
    message: 'No text can be read from the file: program ended with code 1 (not a Word file).',
  });
});

const CATDOC = '/usr/bin/catdoc';
it.skipIf(!existsSync(CATDOC))('catdoc reads the text of a file', async () => {
  const tools = toolsWith({
    '.doc': { program: CATDOC, name: 'catdoc', args: ['-dutf-8', '-w', '{file}'], output: 'text' },
  });
  const file = tools.file('plain.doc', Buffer.from('plain words'));
  expect(readFileSync(file, 'utf8')).toBe('plain words');
  expect(
    (
      await tools.run({
        program: CATDOC,
        args: ['-dutf-8', file],
        maxOutputBytes: 1_000,
        timeoutMs: 20_000,
      })
    ).toString(),
  ).toContain('plain words');
});
