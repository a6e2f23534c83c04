import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { asOptions, typedWords } from '../../src/cli/arguments.js';
import { consent } from '../../src/cli/consent.js';
import { writeAll } from '../../src/cli/output.js';
import { citationText } from '../../src/commands/citation.js';
import { documentOf } from '../../src/commands/doc.js';
import { cellsOf } from '../../src/commands/table.js';
import { temporaryDirectory } from '../support/temp.js';

describe('cells on the command line', () => {
  it('are column=value, empty ones too, and only the first "=" parts them', async () => {
    const cells = await cellsOf([
      'price=12.50',
      'unit=',
      'rule=a=b',
      'mail=\\@home',
      'path=\\\\@x',
    ]);
    expect([...cells]).toEqual([
      ['price', '12.50'],
      ['unit', ''],
      ['rule', 'a=b'],
      ['mail', '@home'],
      ['path', '\\\\@x'],
    ]);
  });

  it('may come from a file, as it is to the last character', async () => {
    const file = join(temporaryDirectory(), 'text');
    writeFileSync(file, '\ufeffzwei\r\nZeilen\n');
    expect((await cellsOf([`text=@${file}`])).get('text')).toBe('\ufeffzwei\r\nZeilen\n');
  });

  it('are refused when they are no pair, stand twice, name the key or a file that does not do', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'binary'), Buffer.from([0xff, 0xfe, 0x00]));
    mkdirSync(join(directory, 'd'));
    await expect(cellsOf(['price'])).rejects.toMatchObject({ code: 'USAGE', exitCode: 2 });
    await expect(cellsOf(['=3'])).rejects.toMatchObject({ code: 'USAGE' });
    await expect(cellsOf(['a=1', 'a=2'])).rejects.toThrow(/twice/);
    await expect(cellsOf(['pk=1'])).rejects.toThrow(/key/);
    await expect(cellsOf([`${'x'.repeat(501)}=1`])).rejects.toThrow(/501 characters/);
    await expect(cellsOf([`a=@${join(directory, 'none')}`])).rejects.toMatchObject({
      code: 'UNREADABLE',
      exitCode: 2,
    });
    await expect(cellsOf([`a=@${join(directory, 'd')}`])).rejects.toMatchObject({
      code: 'UNREADABLE',
    });
    await expect(cellsOf([`a=@${join(directory, 'binary')}`])).rejects.toMatchObject({
      code: 'NOT_TEXT',
    });
  });
});

describe('--c', () => {
  it('is the group of a share, and -c stays the configuration', () => {
    const line = (words: string) => asOptions(words.split(' ')).join(' ');
    expect(line('get --c g -c file --c=h --count -- --c')).toBe(
      'get --group g -c file --group=h --count -- --c',
    );
  });
});

it('a word that a search is to leave out is no option', () => {
  const words = (...args: string[]) => typedWords(asOptions(['search', ...args]).slice(1));
  const typed = ['tea', '-green', '-coffee', '-x', '-"iced tea"', '-1', 'la', '-c', 'a.json'];
  expect(words(...typed)).toEqual(typed);
  const given = asOptions(['search', ...typed]).filter((arg) => arg.startsWith('-'));
  expect(given).toEqual(['-c']);
  for (const option of ['-c', '-c=a.json', '-c/etc/a.json', '-h', '-V', '--json'])
    expect(asOptions(['search', option])).toContain(option);
  expect(asOptions(['search', 'tea', '--limit', '-1'])).toContain('-1');
  expect(asOptions(['search', '--', '-green'])).toContain('-green');
  expect(asOptions(['list', '-green'])).toContain('-green');
});

it('a hash may begin with a dash', () => {
  const line = (words: string) => asOptions(words.split(' ')).join(' ');
  expect(line('doc --hash -a_B0c1D2e3F --json')).toBe('doc --hash=-a_B0c1D2e3F --json');
  expect(line('doc --hash y4Zp1x3nLcAA -c x')).toBe('doc --hash y4Zp1x3nLcAA -c x');
});

describe('help and version', () => {
  it('may be typed as commands, too', () => {
    expect(asOptions(['help', 'table', 'get'])).toEqual(['table', 'get', '--help']);
    expect(asOptions(['help'])).toEqual(['--help']);
    expect(asOptions(['version'])).toEqual(['--version']);
    expect(asOptions(['why', 'help'])).toEqual(['why', 'help']);
  });
});

describe('a document', () => {
  it('is named by its URL or its hash, and by one of them only', () => {
    expect(documentOf({ url: 'https://x.org/a', hash: undefined })).toEqual({
      url: 'https://x.org/a',
    });
    expect(documentOf({ url: undefined, hash: 'h' })).toEqual({ hash: 'h' });
    for (const wrong of [
      { url: 'https://x.org/a', hash: 'h' },
      { url: undefined, hash: undefined },
      { url: 'a.md', hash: undefined },
    ])
      expect(() => documentOf(wrong)).toThrow(expect.objectContaining({ code: 'USAGE' }));
  });
});

describe('a citation record for a person', () => {
  it('shows each sentence with where else it stands, and who cites it, made safe', () => {
    const text = citationText({
      url: 'https://x.org/a',
      title: 'A \x1b[31mtitle',
      sentences: [
        { number: 9, text: 'Here only.', appearsIn: [] },
        { number: 10, text: 'Here and there.', appearsIn: ['https://x.org/b', 'https://x.org/c'] },
      ],
      citing: [{ url: 'https://x.org/b', title: 'B', sentences: 1 }, { url: 'https://x.org/c' }],
      similar: [],
    });
    expect(text).toEqual([
      'title      A \\x1b[31mtitle',
      'document   https://x.org/a',
      'sentences  2 shown, 1 of them also in other documents',
      '   9  Here only.',
      '  10  Here and there.',
      '      also in https://x.org/b',
      '      also in https://x.org/c',
      'cited by: 2 documents',
      '  https://x.org/b (1 sentence) B',
      '  https://x.org/c',
      'similar: no other document',
    ]);
  });
});

describe('what is written piece by piece', () => {
  async function written(isTTY: boolean, ...pieces: (string | Uint8Array)[]): Promise<string> {
    const out = Object.assign(new PassThrough(), { isTTY });
    await writeAll(
      out,
      (async function* () {
        yield* pieces;
      })(),
    );
    return out.read().toString();
  }

  it('is written as it is, and on a terminal without anything that would act there', async () => {
    expect(await written(false, 'a\x1b[2J\r\n')).toBe('a\x1b[2J\r\n');
    expect(await written(true, 'a\tb\x1b[2J\r\nc\0\n')).toBe('a\tb\\x1b[2J\r\nc\\x00\n');
  });

  it('is text on a terminal also where a piece ends within a character', async () => {
    const bytes = Buffer.from('Grüße 😀');
    expect(
      await written(true, bytes.subarray(0, 3), bytes.subarray(3, 10), bytes.subarray(10)),
    ).toBe('Grüße 😀');
  });
});

describe('a question before something is deleted', () => {
  function terminal() {
    const input = new PassThrough();
    const output = new PassThrough();
    return { input, output, isTerminal: true };
  }
  const signal = new AbortController().signal;

  it('lets it be done only when exactly the word was typed', async () => {
    const at = terminal();
    at.input.write('prices\n');
    await expect(consent('Type its name: ', 'prices', at, signal)).resolves.toBeUndefined();
    expect(String(at.output.read())).toBe('Type its name: ');
    for (const typed of ['price\n', 'Prices\n', '\n', 'y\n']) {
      const other = terminal();
      other.input.write(typed);
      await expect(consent('?', 'prices', other, signal)).rejects.toMatchObject({
        code: 'NOT_CONFIRMED',
        exitCode: 1,
      });
    }
  });

  it('takes the end of the input for a no, and Ctrl-C for the end', async () => {
    const at = terminal();
    at.input.end();
    await expect(consent('?', 'yes', at, signal)).rejects.toMatchObject({ code: 'NOT_CONFIRMED' });
    const stopping = new AbortController();
    const asked = consent('?', 'yes', terminal(), stopping.signal);
    stopping.abort();
    await expect(asked).rejects.toThrow(/abort/i);
  });

  it('is a wrong usage where nobody can be asked', async () => {
    const nobody = { ...terminal(), isTerminal: false };
    nobody.input.write('yes\n');
    await expect(consent('?', 'yes', nobody, signal)).rejects.toMatchObject({
      code: 'NOT_CONFIRMED',
      exitCode: 2,
    });
  });
});
