import {
  DocumentError,
  type DocumentReader,
  type Extract,
  TextCollector,
} from './document-reader.js';

/** Code pages of fonts, by their `\fcharset`. */
const CHARSETS: Readonly<Record<number, string>> = {
  0: 'windows-1252',
  77: 'macintosh',
  163: 'windows-1258',
  128: 'shift_jis',
  129: 'euc-kr',
  134: 'gbk',
  136: 'big5',
  161: 'windows-1253',
  162: 'windows-1254',
  177: 'windows-1255',
  178: 'windows-1256',
  186: 'windows-1257',
  204: 'windows-1251',
  222: 'windows-874',
  238: 'windows-1250',
};
/** Code pages that TextDecoder knows by a name other than `windows-N`. */
const CODE_PAGES: Readonly<Record<number, string>> = {
  866: 'ibm866',
  932: 'shift_jis',
  936: 'gbk',
  949: 'euc-kr',
  950: 'big5',
  10000: 'macintosh',
  65001: 'utf-8',
};
/** Groups whose text is not part of the document. */
const HIDDEN = new Set(
  (
    'fonttbl colortbl stylesheet pict object objdata themedata colorschememapping datastore latentstyles fldinst xmlnstbl ' +
    'listtable listoverridetable rsidtbl generator filetbl revtbl info bkmkstart bkmkend nonshppict'
  ).split(' '),
);
/** Groups within hidden ones whose text is part of the document: text boxes and comments. */
const SHOWN = /^(shptxt|annotation)$/;
/** Groups whose text is separate from the text around them. */
const SEPARATE = /^(shptxt|annotation|footnote|header[flr]?|footer[flr]?)$/;
const LITERALS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    par: '\n',
    line: '\n',
    sect: '\n',
    page: '\n',
    row: '\n',
    tab: '\t',
    cell: '\t',
    nestcell: '\t',
    softline: '\n',
    lbr: '\n',
    emspace: ' ',
    enspace: ' ',
    qmspace: ' ',
    emdash: '—',
    endash: '–',
    bullet: '•',
    lquote: '‘',
    rquote: '’',
    ldblquote: '“',
    rdblquote: '”',
    '~': '\u00a0',
    _: '-',
    '\n': '\n',
    '\r': '\n',
    '\\': '\\',
    '{': '{',
    '}': '}',
  }),
);
/** Matches a brace, a control word with its number, a byte, a control symbol, or text. */
const TOKEN = /([{}])|\\([a-z]+)(-?\d+)? ?|\\'([0-9a-f]{2})|\\([^a-z])|([^\\{}\r\n]+)|[\r\n]+/giy;

/** The state that a group inherits from the group around it. */
interface Group {
  isHidden: boolean;
  /** Whether its text is separate from the text around it. */
  isSeparate: boolean;
  /** Number of fallback characters after `\u`, for readers that do not know it. */
  fallbackLength: number;
  encoding: string;
}

/**
 * Rich Text Format 1.9.1: the text with its paragraphs and cells, decoded by the code pages of its
 * fonts.
 */
export const rtf: DocumentReader = {
  name: 'RTF',
  read: (bytes) =>
    new RtfReading(
      Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1'),
    ).read(),
};

class RtfReading {
  readonly #text = new TextCollector();
  readonly #fonts = new Map<number, string>();
  readonly #outerGroups: Group[] = [];
  #group: Group;
  #bytes: number[] = [];
  #skip = 0;
  #font = 0;
  #isGroupStart = false;

  /** @param ansi the code page of fonts that specify none */
  constructor(
    readonly rtf: string,
    private ansi = 'windows-1252',
  ) {
    this.#group = { isHidden: false, isSeparate: false, fallbackLength: 1, encoding: ansi };
  }

  read(): Extract {
    TOKEN.lastIndex = 0;
    for (let at = 0; at < this.rtf.length; at = TOKEN.lastIndex) {
      TOKEN.lastIndex = at;
      const token = TOKEN.exec(this.rtf);
      if (token === null) break;
      const [, brace, word, number, byte, sign, text] = token;
      if (byte !== undefined) this.#byte(Number.parseInt(byte, 16));
      else this.#token(brace, word, number, sign, text);
    }
    this.#flush();
    if (this.#outerGroups.length > 0)
      throw new DocumentError('DOCUMENT_BROKEN', { why: 'it ends within a group' });
    return { text: this.#text.end(), ...this.#info() };
  }

  #token(brace?: string, word?: string, number?: string, sign?: string, text?: string): void {
    if (text !== undefined) {
      for (const character of text) this.#byte(character.charCodeAt(0));
      return;
    }
    this.#flush();
    const isFirst = this.#isGroupStart;
    this.#isGroupStart = brace === '{' || sign === '*';
    if (brace === '{') {
      this.#outerGroups.push(this.#group);
      this.#group = { ...this.#group, isSeparate: false };
    } else if (brace === '}') {
      if (this.#group.isSeparate) this.#add('\n');
      this.#group = this.#outerGroups.pop() ?? this.#group;
      this.#skip = 0;
    } else if (sign === '*') this.#group.isHidden = true;
    else if (word === 'bin') TOKEN.lastIndex += Math.max(0, Number(number ?? 0));
    else if (word !== undefined)
      this.#word(word, number === undefined ? undefined : Number(number), isFirst);
    else if (sign !== undefined) this.#add(LITERALS.get(sign) ?? '');
  }

  #word(word: string, number: number | undefined, isFirst: boolean): void {
    const group = this.#group;
    if (isFirst && HIDDEN.has(word)) group.isHidden = true;
    else if (isFirst && SEPARATE.test(word)) {
      group.isHidden &&= !SHOWN.test(word);
      group.isSeparate = true;
      this.#add('\n');
    } else if (word === 'u' && number !== undefined) {
      this.#add(String.fromCharCode(number & 0xffff));
      this.#skip = group.fallbackLength;
    } else if (word === 'uc') group.fallbackLength = number ?? 1;
    else if (word === 'ansicpg')
      group.encoding = this.ansi = CODE_PAGES[number ?? 0] ?? `windows-${number}`;
    else if (word === 'f' || word === 'deff') {
      this.#font = number ?? 0;
      group.encoding = this.#fonts.get(this.#font) ?? this.ansi;
    } else if (word === 'fcharset') {
      const encoding = CHARSETS[number ?? 0];
      if (encoding !== undefined) this.#fonts.set(this.#font, encoding);
    } else this.#add(LITERALS.get(word) ?? '');
  }

  #byte(byte: number): void {
    this.#isGroupStart = false;
    if (this.#skip > 0) this.#skip -= 1;
    else if (!this.#group.isHidden) this.#bytes.push(byte);
  }

  #flush(): void {
    if (this.#bytes.length === 0) return;
    this.#add(decode(Buffer.from(this.#bytes), this.#group.encoding));
    this.#bytes = [];
  }

  #add(text: string): void {
    if (!this.#group.isHidden && text !== '') this.#text.add(text);
  }

  /**
   * Returns the metadata in the group `info`, which is near the beginning of the file and small.
   */
  #info(): Omit<Extract, 'text'> {
    const info = /\{\\info([\s\S]{0,4096})/.exec(this.rtf.slice(0, 1_000_000))?.[1] ?? '';
    const field = (name: string) => {
      const found = groupOf(info, name);
      return found === undefined
        ? undefined
        : new RtfReading(found, this.ansi).read().text || undefined;
    };
    return { title: field('title'), author: field('author') };
  }
}

/** Returns the content of the first group with a control word; undefined if it has no end. */
function groupOf(rtf: string, word: string): string | undefined {
  const start = new RegExp(`\\{(?:\\\\\\*)?\\\\${word}(?![a-z\\d-]) ?`).exec(rtf);
  if (start === null) return undefined;
  const from = start.index + start[0].length;
  let depth = 1;
  for (let at = from; at < rtf.length; at += 1) {
    if (rtf[at] === '\\') at += 1;
    else if (rtf[at] === '{') depth += 1;
    else if (rtf[at] === '}') depth -= 1;
    if (depth === 0) return rtf.slice(from, at);
  }
  return undefined;
}

function decode(bytes: Buffer, encoding: string): string {
  try {
    return new TextDecoder(encoding).decode(bytes);
  } catch {
    return bytes.toString('latin1');
  }
}
