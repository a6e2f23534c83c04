import { describe, expect, it } from 'vitest';
import { checkDocuments } from '../../src/commands/check-documents.js';
import type { FoundProgram } from '../../src/content/helpers/finder.js';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { OCR } from '../content/programs.js';

const TESSERACT = { program: 'tesseract', reads: 'scans and pictures', package: 'tesseract-ocr' };
const PDFTOPPM = { program: 'pdftoppm', reads: 'scans in PDF', package: 'poppler-utils' };
const CATDOC = { program: 'catdoc', reads: 'old Word documents (.doc)', package: 'catdoc' };
const CATPPT = { program: 'catppt', reads: 'old presentations (.ppt)', package: 'catdoc' };
const DWG = { program: 'dwg2text', reads: 'files that end in .dwg' };

const there = <T extends { readonly program: string }>(program: T) => ({
  ...program,
  path: `/usr/bin/${program.program}`,
});

/** Returns the findings as lines: the label, the message and the hint. */
function checked(found: readonly FoundProgram[], current: Programs = NO_PROGRAMS): string[] {
  return [...checkDocuments({ current, found: () => found })].map(
    ({ check, hint, message, ok }) => {
      expect(ok).toBe(true);
      return `${hint === undefined ? 'ok' : 'note'} ${check}: ${message}${hint ? ` | ${hint}` : ''}`;
    },
  );
}

describe('check lists documents with their readers', () => {
  it('if no program is installed, with the lines that install them', () => {
    expect(checked([TESSERACT, PDFTOPPM, CATDOC, CATPPT, DWG])).toEqual([
      'ok documents: read here: PDF, Word, Excel, PowerPoint, OpenDocument, EPUB, RTF, e-mail, mail folders, archives',
      'note OCR: scans and pictures are skipped, because no OCR is installed | Install it: `sudo apt-get install tesseract-ocr poppler-utils`',
      'note other programs: old Word documents (.doc), old presentations (.ppt): skipped, because catdoc, catppt are not installed | Install it: `sudo apt-get install catdoc`',
      'note other programs: files that end in .dwg: skipped, because dwg2text is not installed | Install it where peersync finds it (PATH), or correct `documents.commands`.',
    ]);
  });

  it('if all are installed, with the languages', () => {
    const all = [TESSERACT, PDFTOPPM, CATDOC, DWG].map(there);
    expect(checked(all, { commands: {}, ocr: OCR }).slice(1)).toEqual([
      'ok OCR: tesseract reads scans and pictures (deu, eng)',
      'ok other programs: catdoc reads old Word documents (.doc); dwg2text reads files that end in .dwg',
    ]);
  });

  it('if only pictures can be read', () => {
    const { pdftoppm: _pdftoppm, ...ocr } = OCR;
    expect(checked([there(TESSERACT), PDFTOPPM], { commands: {}, ocr }).slice(1)).toEqual([
      'ok OCR: tesseract reads pictures (deu, eng)',
      'note OCR: scans in PDF are skipped, because pdftoppm is not installed | Install it: `sudo apt-get install poppler-utils`',
    ]);
  });

  it('if OCR is off, or has none of the languages', () => {
    const both = [TESSERACT, PDFTOPPM].map(there);
    expect(checked(both, { commands: {}, noOcr: 'off' })[1]).toBe(
      'ok OCR: off (`documents.ocr`): scans and pictures are skipped',
    );
    expect(checked(both, { commands: {}, noOcr: 'no language' })[1]).toMatch(
      /^note OCR: scans and pictures are skipped, because tesseract has none of the languages .*documents\.languages/,
    );
  });
});
