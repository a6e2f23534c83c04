import { formatBytes } from '../../lib/units.js';
import type { DocumentReader, ReadContext } from './document-reader.js';
import { MEMBER_LIMITS, type MemberLimits, MemberText } from './members.js';

/** Maximum number of messages. The limits of text and time end most folders earlier. */
const MAX_MESSAGES = 100_000;

const NO_CONTEXT: ReadContext = { name: '', onPage: () => {} };
const LINE_FEED = 0x0a;
const FROM = Buffer.from('\nFrom ');

/**
 * Returns the reader of mail folders in the format mbox. A folder is one document: its messages,
 * each under its subject, up to `limits`.
 *
 * @param mail the reader of a message
 */
export function mboxReader(
  mail: DocumentReader,
  limits: MemberLimits = { ...MEMBER_LIMITS, members: MAX_MESSAGES },
): DocumentReader {
  return {
    name: 'mbox',
    read: async (bytes, depth, enoughCharacters, { name }) => {
      const text = new MemberText(limits, enoughCharacters);
      for (const message of messages(bytes)) {
        if (text.isFull || !text.hasTime()) break;
        await addMessage(text, message, mail, depth);
      }
      return { text: text.end(), title: depth === 0 ? name : undefined };
    },
  };
}

async function addMessage(
  into: MemberText,
  message: Buffer,
  mail: DocumentReader,
  depth: number,
): Promise<void> {
  const { memberBytes } = into.limits;
  if (message.length > memberBytes) {
    into.cut(`Messages of more than ${formatBytes(memberBytes)} are left out.`);
    return;
  }
  try {
    const { text, title = '' } = await mail.read(
      message,
      depth,
      Number.POSITIVE_INFINITY,
      NO_CONTEXT,
    );
    if (into.heading(title)) into.add(text);
  } catch {
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
