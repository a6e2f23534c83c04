import { decoderOf, EncodingDetector } from '../encoding.js';
import {
  extensionByContent,
  helperExtension,
  helperFor,
  type Lack,
  NO_PROGRAMS,
} from '../helpers/programs.js';
import { repairedMessage } from '../helpers/repaired-message.js';
import { ProgramError } from '../helpers/tools.js';
import { HEAD_BYTES } from '../signatures.js';
import { typeName } from '../type-names.js';
import {
  DocumentError,
  type DocumentReader,
  type Extract,
  MomentaryError,
  nestedIn,
} from './document-reader.js';

/** Maximum size of the text that a program writes, in bytes. */
const MAX_OUTPUT_BYTES = 64 * 2 ** 20;
/** Maximum time of a program for one document, in ms, if the configuration has none. */
const MAX_TIME_MS = 2 * 60_000;

/**
 * Returns the reader of files that a program reads: those of old formats, and those that
 * `documents.commands` names.
 *
 * The program gets a private copy of the file. Of the name of the original, the copy has only the
 * extension.
 *
 * @param mail the reader of messages, which some programs write
 */
export function helperReader(mail: DocumentReader): DocumentReader {
  return {
    name: 'program',
    read: async (bytes, context): Promise<Extract> => {
      const { name, tools } = context;
      const programs = tools?.programs ?? NO_PROGRAMS;
      const head = bytes.subarray(0, HEAD_BYTES);
      const extension = helperExtension(name, head, programs);
      const command = programs.commands[extension];
      const isByContent = !command?.isConfigured && extensionByContent(head) !== undefined;
      const lacking = (missing: string) =>
        new DocumentError(isByContent ? 'NO_HELPER_BY_CONTENT' : 'NO_HELPER', {
          why: typeName(name, head) ?? `of a type (${extension}) that only a program reads`,
          missing,
          how: howToInstall(extension, command?.isConfigured),
        });
      if (tools === undefined || command?.program === undefined) {
        tools?.lacks.add(extension as Lack);
        throw lacking(command?.name ?? helperFor(extension)?.program ?? 'none is known');
      }
      const { args, output, program } = command;
      const file = tools.file(`document${extension}`, bytes);
      try {
        const written = await tools.run({
          program,
          args: args.map((word) => word.replaceAll('{file}', () => file)),
          maxOutputBytes: MAX_OUTPUT_BYTES,
          timeoutMs: programs.commandTimeoutMs ?? MAX_TIME_MS,
        });
        const read =
          output === 'mail'
            ? await mail.read(repairedMessage(written), { ...nestedIn(context), name: '' })
            : { text: textOf(written, command.name) };
        context.onPage({ page: 1, pages: 1 });
        return { ...read, reader: command.name };
      } catch (error) {
        if (!(error instanceof ProgramError)) throw error;
        // While a program is updated, it may be missing for a moment.
        if (error.kind === 'not started') throw lacking(error.message);
        const isLarge = error.kind === 'timeout' || error.kind === 'output';
        const code = isLarge ? 'DOCUMENT_TOO_LARGE' : 'DOCUMENT_BROKEN';
        throw new MomentaryError(code, { why: error.message }, { cause: error });
      }
    },
  };
}

function howToInstall(extension: string, isConfigured = false): string {
  const name = helperFor(extension)?.package;
  return isConfigured || name === undefined
    ? 'Install it, or correct `documents.commands`.'
    : `Install it: \`sudo apt-get install ${name}\`.`;
}

/**
 * Returns the output of a program as text. Form feeds, which separate pages, end a paragraph.
 * @throws DocumentError if it is no text
 */
function textOf(written: Buffer, program: string): string {
  const detector = new EncodingDetector();
  detector.write(written);
  const encoding = detector.end();
  if (encoding === 'binary')
    throw new DocumentError('DOCUMENT_BROKEN', { why: `${program} writes no text` });
  const text =
    encoding === 'unknown-8bit' ? written.toString() : decoderOf(encoding).decode(written);
  return text.replaceAll('\f', '\n\n').trim();
}
