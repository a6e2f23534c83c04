import { safe } from '../cli/text.js';
import type { FoundProgram, ProgramFinder } from '../content/helpers/finder.js';
import type { Programs } from '../content/helpers/programs.js';
import type { DocumentKind } from '../lib/file.js';
import type { Finding } from './finding.js';

/** The kinds of document that are read without other programs, as people call them. */
const BUILT_IN: Readonly<Record<Exclude<DocumentKind, 'picture' | 'helper'>, string>> = {
  pdf: 'PDF',
  word: 'Word',
  sheets: 'Excel',
  slides: 'PowerPoint',
  openDocument: 'OpenDocument',
  epub: 'EPUB',
  rtf: 'RTF',
  mail: 'e-mail',
  mbox: 'mail folders',
  archive: 'archives',
};

/** The programs of OCR. All others write the text of a file by themselves. */
const OCR_PROGRAMS = ['tesseract', 'pdftoppm'];

/**
 * Tells which documents are read, and by which programs. A program that is missing is no fault:
 * its files are skipped until it is installed.
 */
export function* checkDocuments(
  finder: Pick<ProgramFinder, 'current' | 'found'>,
): Generator<Finding> {
  const found = finder.found();
  const kinds = Object.values(BUILT_IN).join(', ');
  yield { check: 'documents', ok: true, message: `read here: ${kinds}` };
  yield* checkOcr(finder.current, found);
  const others = found.filter(({ program }) => !OCR_PROGRAMS.includes(program));
  const installed = others.filter(({ path }) => path !== undefined);
  if (installed.length > 0)
    yield {
      check: 'other programs',
      ok: true,
      message: installed.map(({ program, reads }) => `${safe(program)} reads ${reads}`).join('; '),
    };
  const missing = others.filter(({ path }) => path === undefined);
  const sourceOf = ({ package: name, program }: FoundProgram) => name ?? program;
  for (const source of new Set(missing.map(sourceOf)))
    yield missingPrograms(missing.filter((program) => sourceOf(program) === source));
}

/** @param programs of one package */
function missingPrograms(programs: readonly FoundProgram[]): Finding {
  const names = programs.map(({ program }) => safe(program)).join(', ');
  const [first] = programs;
  return {
    check: 'other programs',
    ok: true,
    message: `${programs.map(({ reads }) => reads).join(', ')}: skipped, because ${names} ${programs.length === 1 ? 'is' : 'are'} not installed`,
    hint:
      first?.package === undefined
        ? 'Install it where peersync finds it (PATH), or correct `documents.commands`.'
        : installHint(first.package),
  };
}

function installHint(...packages: readonly string[]): string {
  return `Install it: \`sudo apt-get install ${packages.join(' ')}\``;
}

function* checkOcr({ noOcr, ocr }: Programs, found: readonly FoundProgram[]): Generator<Finding> {
  const check = 'OCR';
  const all = found.filter(({ program }) => OCR_PROGRAMS.includes(program));
  const packages = all.flatMap(({ package: name, path }) =>
    path === undefined ? (name ?? []) : [],
  );
  if (ocr === undefined) {
    const skipped = 'scans and pictures are skipped';
    if (noOcr === 'off') yield { check, ok: true, message: `off (\`documents.ocr\`): ${skipped}` };
    else if (noOcr === 'no language')
      yield {
        check,
        ok: true,
        message: `${skipped}, because tesseract has none of the languages that it needs`,
        hint: 'Install a language, for instance `sudo apt-get install tesseract-ocr-eng`, or correct `documents.languages`.',
      };
    else
      yield {
        check,
        ok: true,
        message: `${skipped}, because no OCR is installed`,
        hint: installHint(...packages),
      };
    return;
  }
  const languages = ocr.languages.replaceAll('+', ', ');
  const what = ocr.pdftoppm === undefined ? 'pictures' : 'scans and pictures';
  yield { check, ok: true, message: `tesseract reads ${what} (${languages})` };
  if (ocr.pdftoppm === undefined)
    yield {
      check,
      ok: true,
      message: 'scans in PDF are skipped, because pdftoppm is not installed',
      hint: installHint(...packages),
    };
}
