import { messageOf } from '../../lib/errors.js';
import { counted } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import { ShortageError } from '../helpers/tools.js';
import { documentKind, HEAD_BYTES, holdsPrivateKey, signedType } from '../signatures.js';
import { isNameOfHtml, plainText, type ReadAttachment, titled } from './attachments.js';
import { MemberBudget } from './budget.js';
import {
  DocumentError,
  type DocumentReader,
  MomentaryError,
  nestedIn,
  type ReadContext,
} from './document-reader.js';
import { isKeptOut } from './kept-out.js';
import { type Member, MemberError, MemberText } from './members.js';
import { gunzipped, tarMembers } from './tar.js';
import { zipMembers } from './zip.js';

/** Resource forks, which macOS adds to archives. */
const RESOURCE_FORK = /^__MACOSX\/|(?:^|\/)\._[^/]*$/i;

/**
 * Returns the reader of ZIP, tar and tar.gz. An archive is one document: the names of its members,
 * each with its text below it. Members that readers read, text, and archives in archives have a
 * text. Files that no folder takes by default, such as secrets, are left out.
 *
 * Nothing is written, and each member is unpacked in memory. What a hostile archive can take is
 * limited by a budget, for all archives of one document together.
 */
export function archiveReader(readMember: ReadAttachment): DocumentReader {
  return {
    name: 'archive',
    read: async (bytes, context) => {
      const { budget = new MemberBudget(), depth, enoughCharacters, name } = context;
      const text = new MemberText(budget, enoughCharacters);
      const reading = new ArchiveReading(readMember, text, { ...context, budget });
      await reading.add(bytes, '', depth);
      // Without a title, a heading in the text of a member would be taken for one.
      return { text: reading.text.end(), title: depth === 0 ? name : undefined };
    },
  };
}

/** Reads an archive and those within it. */
class ArchiveReading {
  constructor(
    private readonly readMember: ReadAttachment,
    readonly text: MemberText,
    private readonly context: ReadContext,
  ) {}

  /**
   * Adds the members of an archive.
   *
   * @param within the name of the archive in another one, with a slash; empty for the outermost
   * @throws MemberError if no member can be read
   */
  async add(bytes: Uint8Array, within: string, depth: number): Promise<void> {
    const before = this.text.members;
    try {
      for await (const member of this.#membersOf(bytes)) {
        if (this.text.isFull) return;
        await this.#addMember(member, within, depth);
      }
    } catch (error) {
      if (this.text.isFull) return;
      const read = this.text.members - before;
      if (read === 0 || error instanceof ShortageError) throw error;
      const which = within === '' ? 'The archive' : within.slice(0, -1);
      const where = `after ${counted(read, 'member')}`;
      this.text.cut(`${which} is damaged ${where} (${messageOf(error)}).`);
    }
  }

  #membersOf(bytes: Uint8Array): AsyncIterable<Member> | Iterable<Member> {
    const onUnpack = (size: number) => this.#spend(size);
    const type = signedType(bytes.subarray(0, HEAD_BYTES))?.type;
    if (type === 'application/zip') return zipMembers(bytes, onUnpack);
    return tarMembers(type === 'application/gzip' ? gunzipped(bytes, onUnpack) : [bytes]);
  }

  /** @throws MemberError if that many bytes are too many */
  #spend(size: number): void {
    const { budget } = this.text;
    budget.bytes += size;
    if (budget.bytes <= budget.limits.bytes) return;
    this.text.stop(`It unpacks to more than ${formatBytes(budget.limits.bytes)}.`);
    throw new MemberError('not unpacked');
  }

  async #addMember(member: Member, within: string, depth: number): Promise<void> {
    const name = plainName(member.name);
    if (name === '' || RESOURCE_FORK.test(name) || isKeptOut(name)) return;
    const heading = within + name;
    const { budget } = this.text;
    if (budget.members >= budget.limits.members) this.text.stopAt(budget.limits.members, 'member');
    if (!this.text.heading(heading)) return;
    budget.members += 1;
    try {
      this.text.add(await this.#textOf(member, heading, depth));
    } catch (error) {
      if (error instanceof ShortageError) throw error;
      if (error instanceof MomentaryError) this.context.tools?.lacks.add('time');
      if (!this.text.isFull) this.text.add(`(${reasonOf(error)})`);
    }
  }

  /**
   * Returns the text of a member; empty for one without a text, and for an archive, whose members
   * have headings of their own.
   * @throws an error that `reasonOf` explains
   */
  async #textOf(member: Member, heading: string, depth: number): Promise<string> {
    const { limits } = this.text.budget;
    if (member.isEncrypted) throw new MemberError('encrypted');
    if (!this.text.hasTime()) return '';
    if (member.size > limits.memberBytes) {
      const most = formatBytes(limits.memberBytes);
      this.text.cut(`Members of more than ${most} give only their names.`);
      throw new MemberError('too large');
    }
    const content = await member.read();
    if (holdsPrivateKey(content)) throw new MemberError('a private key, which is kept out');
    if (documentKind(heading, content) === 'archive') {
      if (depth >= limits.depth) {
        this.text.cut(`Archives within ${limits.depth} others give only their names.`);
        throw new MemberError('not opened');
      }
      await this.add(content, `${heading}/`, depth + 1);
      return '';
    }
    const nested = nestedIn({ ...this.context, depth });
    const read = await this.text.nested(() => this.readMember(content, heading, nested));
    if (read !== undefined) return titled(read);
    return plainText(content, { isHtml: isNameOfHtml(heading), room: this.text.room });
  }
}

/** Maximum number of characters of the name of a member. The end of a longer one is kept. */
const MAX_NAME = 1_000;

/** Returns the name of a member without steps to other directories. */
function plainName(name: string): string {
  const steps = name.slice(-MAX_NAME).split(/[/\\]/);
  return steps.filter((step) => !/^\.{0,2}$/.test(step)).join('/');
}

/** Returns why a member has no text, without a full stop. */
function reasonOf(error: unknown): string {
  if (error instanceof MemberError) return error.message;
  if (!(error instanceof DocumentError)) return 'damaged';
  if (error.code === 'DOCUMENT_ENCRYPTED') return 'encrypted';
  if (error.code.startsWith('NO_')) return error.message.replace(/^The file is |\.$/g, '');
  return 'damaged';
}
