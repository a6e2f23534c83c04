import { describe, expect, it } from 'vitest';
import { type Command, NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { AWAITS_PROGRAM, encodingWith, isReadableNow } from '../../src/content/helpers/readable.js';
import { command, OCR } from './programs.js';

const { pdftoppm: _pdftoppm, ...onlyPictures } = OCR;
const { isConfigured: _isConfigured, ...catdoc } = command('catdoc');
const { program: _program, ...missing } = command('dwg2text');
const withCommand = (extension: string, of: Command = command('dwg2text')): Programs => ({
  commands: { [extension]: of },
});

describe('a file that was skipped because no program reads it', () => {
  it.each<[string, string, Programs, boolean]>([
    ['NO_OCR', 'a.pdf', NO_PROGRAMS, false],
    ['NO_OCR', 'a.pdf', { commands: {}, ocr: OCR }, true],
    ['NO_OCR', 'a.PDF', { commands: {}, ocr: onlyPictures }, false],
    ['NO_OCR', 'a.png', { commands: {}, ocr: onlyPictures }, true],
    ['NO_HELPER', 'a/b.DOC', withCommand('.doc', catdoc), true],
    ['NO_HELPER', 'a.xls', withCommand('.doc', catdoc), false],
    ['NO_HELPER', 'a.dwg', withCommand('.dwg', missing), false],
    ['NO_HELPER', 'a.dwg', withCommand('.dwg'), true],
    ['NO_HELPER', '.doc', withCommand('.dwg'), false],
    // The command has left the configuration.
    ['NO_HELPER', 'a.tex', NO_PROGRAMS, true],
    ['NOT_TEXT', 'a.dwg', withCommand('.dwg'), true],
    ['NOT_TEXT', 'a.dwg', withCommand('.dwg', missing), true],
    ['NOT_TEXT', 'a.dwg', withCommand('.doc', catdoc), false],
    ['NO_WORDS', 'a.dwg', withCommand('.dwg'), false],
  ])('with %s may be read: %s', (code, path, programs, isReadable) => {
    expect(isReadableNow(programs, path, code)).toBe(isReadable);
  });

  it.each(['letter', 'letter.doc', 'plan.dwg', 'a.ps'])(
    'may be read by the program of its type if its bytes show that, whatever its name is: %s',
    (path) => {
      const code = 'NO_HELPER_BY_CONTENT';
      expect(isReadableNow(withCommand('.ps', catdoc), path, code)).toBe(true);
      expect(isReadableNow(withCommand('.djvu', catdoc), path, code)).toBe(true);
      expect(isReadableNow(withCommand('.doc', catdoc), path, code)).toBe(false);
    },
  );

  it('waits for a program with three codes', () => {
    expect([...AWAITS_PROGRAM]).toEqual(['NO_OCR', 'NO_HELPER', 'NO_HELPER_BY_CONTENT']);
  });
});

it('a file is a document if the configuration names a program for it', () => {
  expect(encodingWith(withCommand('.dwg'), 'a/plan.DWG', 'binary')).toBe('document');
  expect(encodingWith(withCommand('.tex'), 'a.tex', 'utf-8')).toBe('document');
  expect(encodingWith(withCommand('.doc', catdoc), 'a.doc', 'utf-8')).toBe('utf-8');
  expect(encodingWith(NO_PROGRAMS, 'a.dwg', 'binary')).toBe('binary');
});
