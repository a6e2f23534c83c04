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
    ['NOT_TEXT', 'a.dwg', withCommand('.dwg'), true],
    ['NOT_TEXT', 'a.dwg', withCommand('.dwg', missing), true],
    ['NOT_TEXT', 'a.dwg', withCommand('.doc', catdoc), false],
    ['NO_WORDS', 'a.dwg', withCommand('.dwg'), false],
  ])('with %s may be read: %s', (code, path, programs, isReadable) => {
    expect(isReadableNow(programs, path, code)).toBe(isReadable);
  });

  it('may be read by any program if its bytes show its type, and its name does not', () => {
    expect(isReadableNow(withCommand('.ps', catdoc), 'letter', 'NO_HELPER')).toBe(true);
    expect(isReadableNow(withCommand('.dwg'), 'letter', 'NO_HELPER')).toBe(false);
  });

  it('waits for a program with two codes', () => {
    expect([...AWAITS_PROGRAM]).toEqual(['NO_OCR', 'NO_HELPER']);
  });
});

it('a file is a document if the configuration names a program for it', () => {
  expect(encodingWith(withCommand('.dwg'), 'a/plan.DWG', 'binary')).toBe('document');
  expect(encodingWith(withCommand('.tex'), 'a.tex', 'utf-8')).toBe('document');
  expect(encodingWith(withCommand('.doc', catdoc), 'a.doc', 'utf-8')).toBe('utf-8');
  expect(encodingWith(NO_PROGRAMS, 'a.dwg', 'binary')).toBe('binary');
});
