import { messageOf } from '../../lib/errors.js';
import { attachmentText, isNameOfHtml, type ReadAttachment } from './attachments.js';
import { MemberBudget } from './budget.js';
import type { ReadContext } from './document-reader.js';
import { MemberText } from './members.js';

/**
 * Size up to which all files in a PDF are read, in bytes: PDF.js unpacks them all at once, and
 * copies them.
 */
const MAX_PDF_BYTES = 32 * 2 ** 20;
/** Begins the dictionary of such a file, which is never packed itself. */
const EMBEDDED_FILE = '/EmbeddedFile';

/** A file in a PDF, as PDF.js has it. */
interface EmbeddedFile {
  readonly filename: string;
  readonly content: Uint8Array;
}

/** Returns the file that PDF.js found, or that a comment has; undefined if it is none. */
function embeddedFile(value: unknown): EmbeddedFile | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('filename' in value && 'content' in value)) return undefined;
  const { content, filename } = value;
  if (typeof filename !== 'string' || !(content instanceof Uint8Array)) return undefined;
  return { filename, content };
}

/**
 * Reads the files in one PDF: those that are attached to the whole, and those of comments. Their
 * texts are no part of its pages.
 */
export class PdfAttachments {
  readonly #files = new Map<string, EmbeddedFile>();
  readonly #isTooLarge: boolean;

  /** @param bytes the PDF, before PDF.js takes it over */
  constructor(bytes: Uint8Array) {
    const pdf = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#isTooLarge = pdf.length > MAX_PDF_BYTES && pdf.includes(EMBEDDED_FILE);
  }

  /** Adds a file, if it is one. The same file may be added twice. */
  add(value: unknown): void {
    const file = embeddedFile(value);
    if (file !== undefined) this.#files.set(`${file.filename} ${file.content.length}`, file);
  }

  /** Adds the files that are attached to the whole document. A damaged list of them is left out. */
  async #addAttached(
    document: { getAttachments(): Promise<unknown> },
    budget: MemberBudget,
  ): Promise<void> {
    try {
      for (const file of Object.values((await document.getAttachments()) ?? {})) this.add(file);
    } catch (error) {
      budget.cuts.add(`The list of attached files is damaged (${messageOf(error)}).`);
    }
  }

  /**
   * Returns the texts of the files that were added, and of those that are attached to the whole
   * document, each under its name; undefined if there are none.
   */
  async readAll(
    document: { getAttachments(): Promise<unknown> },
    readAttachment: ReadAttachment,
    context: ReadContext,
  ): Promise<string | undefined> {
    const { budget = new MemberBudget() } = context;
    if (this.#isTooLarge) budget.cuts.add('Files in a PDF of more than 32 MiB are left out.');
    else await this.#addAttached(document, budget);
    if (this.#files.size === 0) return undefined;
    const text = new MemberText(budget, Number.POSITIVE_INFINITY);
    for (const { content, filename } of this.#files.values()) {
      if (budget.members >= budget.limits.members) text.stopAt(budget.limits.members, 'file');
      if (!text.heading(filename)) break;
      budget.members += 1;
      const attachment = {
        name: filename,
        bytes: content,
        isText: true,
        isHtml: isNameOfHtml(filename),
      };
      const within = { ...context, budget };
      text.add(await text.nested(() => attachmentText(attachment, readAttachment, within)));
    }
    return text.end();
  }
}
