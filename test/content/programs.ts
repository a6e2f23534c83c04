import type { Command, OcrProgram } from '../../src/content/helpers/programs.js';

/** OCR that is installed. */
export const OCR: OcrProgram = {
  tesseract: '/usr/bin/tesseract',
  pdftoppm: '/usr/bin/pdftoppm',
  languages: 'deu+eng',
  findsRotation: true,
  dpi: 300,
  maxPages: 1_000,
  pageTimeoutMs: 120_000,
};

/** Returns a program that the configuration names. */
export function command(name: string): Command {
  return {
    program: `/usr/bin/${name}`,
    name,
    args: ['{file}'],
    output: 'text',
    isConfigured: true,
  };
}
