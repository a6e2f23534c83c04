import { formatBytes } from '../../lib/units.js';
import { ShortageError } from '../helpers/tools.js';
import { MemberBudget } from './budget.js';
import type { DocumentReader, ReadContext } from './document-reader.js';
import { MemberText } from './members.js';

const LINE_FEED = 0x0a;
const FROM = Buffer.from('\nFrom ');

/**
 * Returns the reader of mail folders in the format mbox. A folder is one document: its messages,
 * each under its subject, within a budget.
 *
 * @param mail the reader of a message
 */
export function mboxReader(mail: DocumentReader): DocumentReader {
  return {
    name: 'mbox',
    read: async (bytes, context) => {
      const { budget = new MemberBudget(), depth, enoughCharacters, name } = context;
      const text = new MemberText(budget, enoughCharacters);
      const enough = Number.POSITIVE_INFINITY;
      const ofMessage = { ...context, budget, name: '', enoughCharacters: enough };
      for (const message of messages(bytes)) {
        if (text.members >= budget.limits.messages) text.stopAt(budget.limits.messages, 'message');
        if (text.isFull || !text.hasTime()) break;
        await addMessage(text, message, mail, ofMessage);
      }
      return { text: text.end(), title: depth === 0 ? name : undefined };
    },
  };
}

async function addMessage(
  into: MemberText,
  message: Buffer,
  mail: DocumentReader,
  context: ReadContext,
): Promise<void> {
  const { memberBytes } = into.budget.limits;
  if (message.length > memberBytes) {
    into.cut(`Messages of more than ${formatBytes(memberBytes)} are left out.`);
    return;
  }
  try {
    const { text, title = '' } = await into.nested(async () => await mail.read(message, context));
    if (into.heading(title)) into.add(text);
  } catch (error) {
    if (error instanceof ShortageError) throw error;
    if (into.heading('')) into.add('(a message that is damaged)');
  }
}

/**
 * Yields the messages. Each begins after a line `From …` at the start of the file or after an empty
 * line. A line of a message that begins like that has a `>` in front, which is removed (mboxrd).
 */
function* messages(folder: Uint8Array): Generator<Buffer> {
  const bytes = Buffer.from(folder.buffer, folder.byteOffset, folder.byteLength);
  for (let begin = 0; begin < bytes.length; ) {
    const lineEnd = bytes.indexOf(LINE_FEED, begin);
    if (lineEnd < 0) return;
    const end = endOfMessage(bytes, lineEnd);
    yield unquoted(bytes.subarray(lineEnd + 1, end));
    begin = end;
  }
}

/** Returns the offset of the next line `From …` after an empty line, or of the end. */
function endOfMessage(bytes: Buffer, from: number): number {
  for (let at = from; ; at += 1) {
    at = bytes.indexOf(FROM, at);
    if (at < 0) return bytes.length;
    const before = bytes[at - 1] === 0x0d ? bytes[at - 2] : bytes[at - 1];
    if (before === LINE_FEED) return at + 1;
  }
}

function unquoted(message: Buffer): Buffer {
  if (!message.includes('\n>')) return message;
  const text = message.toString('latin1').replace(/^>(>*From )/gm, '$1');
  return Buffer.from(text, 'latin1');
}
