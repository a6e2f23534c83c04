import type { Encoding } from '../../lib/file.js';
import type { DocumentError } from '../readers/document-reader.js';
import { configuredCommand, extensionOf, helperFor, type Programs } from './programs.js';

/** The code of a file that is neither text nor a document, for a peer that takes only text. */
export const NOT_TEXT = 'NOT_TEXT';

const NO_PROGRAM = ['NO_OCR', 'NO_HELPER'] as const satisfies readonly DocumentError['code'][];
/** The codes of files that are skipped until a program is there that reads them. */
export const AWAITS_PROGRAM: ReadonlySet<string> = new Set(NO_PROGRAM);

/** Returns the encoding of a file: `document` if the configuration names a program for it. */
export function encodingWith(programs: Programs, path: string, encoding: Encoding): Encoding {
  return configuredCommand(path, programs) === undefined ? encoding : 'document';
}

/**
 * Whether a file may be read now that was skipped because no program read it.
 *
 * @param code of the failure for which it was skipped
 */
export function isReadableNow(programs: Programs, path: string, code: string): boolean {
  const { commands, ocr } = programs;
  const extension = extensionOf(path);
  // Pages of a PDF have to be drawn first.
  if (code === 'NO_OCR')
    return ocr !== undefined && (ocr.pdftoppm !== undefined || extension !== '.pdf');
  if (code !== 'NO_HELPER' && code !== NOT_TEXT) return false;
  if (commands[extension]?.program !== undefined) return true;
  if (code === NOT_TEXT) return commands[extension] !== undefined;
  // The first bytes of some files show their type, whatever their names are.
  const isNamed = commands[extension] !== undefined || helperFor(extension) !== undefined;
  return !isNamed && Object.values(commands).some(({ isConfigured }) => !isConfigured);
}
