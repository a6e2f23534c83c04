import type { Encoding } from '../../lib/file.js';
import type { DocumentError } from '../readers/document-reader.js';
import {
  configuredCommand,
  EXTENSIONS_BY_CONTENT,
  extensionOf,
  helperFor,
  isThereNow,
  type Programs,
} from './programs.js';

/** The code of a file that is neither text nor a document, for a peer that takes only text. */
export const NOT_TEXT = 'NOT_TEXT';

const NO_PROGRAM = [
  'NO_OCR',
  'NO_HELPER',
  'NO_HELPER_BY_CONTENT',
] as const satisfies readonly DocumentError['code'][];
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
  const extension = extensionOf(path);
  const command = programs.commands[extension];
  // Pages of a PDF have to be drawn first.
  if (code === 'NO_OCR') return isThereNow(programs, [extension === '.pdf' ? 'ocr of pdf' : 'ocr']);
  if (code === NOT_TEXT) return command !== undefined;
  if (code === 'NO_HELPER_BY_CONTENT') return isThereNow(programs, EXTENSIONS_BY_CONTENT);
  if (code !== 'NO_HELPER') return false;
  // Without a command of the configuration, the file may be one that needs no program.
  const isNamed = command !== undefined || helperFor(extension) !== undefined;
  return command?.program !== undefined || (!isNamed && extension !== '');
}
