import { inflateSync } from 'node:zlib';

/** The strings that a simple PDF shows; undefined for one that is broken, or shows none. */
export function pdfText(data: Buffer): string | undefined {
  const file = data.toString('latin1');
  if (!file.startsWith('%PDF-') || !file.includes('%%EOF')) return undefined;
  const strings = [
    ...file.matchAll(/\bobj\b((?:(?!\bobj\b).)*?)>>\s*stream\r?\n(.*?)\r?\n?endstream/gs),
  ].flatMap(([, dictionary = '', stream = '']) =>
    shownIn(unfiltered(dictionary, Buffer.from(stream, 'latin1'))),
  );
  const text = strings.join(' ').replace(/\s+/g, ' ').trim();
  return text === '' ? undefined : text;
}

/** The content of a stream; empty where a filter cannot read it. */
function unfiltered(dictionary: string, stream: Buffer): Buffer {
  let content = stream;
  for (const [filter] of dictionary.matchAll(/\/ASCII85Decode|\/FlateDecode/g)) {
    try {
      content = filter === '/FlateDecode' ? inflateSync(content) : ascii85(content.toString('latin1'));
    } catch {
      return Buffer.alloc(0);
    }
  }
  return content;
}

/** Five characters of `!` to `u` are four bytes, `z` is four NUL; `~>` ends it. */
function ascii85(text: string): Buffer {
  const digits = text.replace(/~>.*$/s, '').replace(/\s/g, '').replace(/z/g, '!!!!!');
  const bytes: number[] = [];
  for (let at = 0; at < digits.length; at += 5) {
    const group = digits.slice(at, at + 5);
    const value = [...group.padEnd(5, 'u')].reduce((sum, digit) => sum * 85 + digit.charCodeAt(0) - 33, 0);
    const four = [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256);
    bytes.push(...four.slice(0, group.length - 1));
  }
  return Buffer.from(bytes);
}

/** The operands of `Tj`: literal strings, and hexadecimal ones. */
function shownIn(content: Buffer): string[] {
  const strings = content.toString('latin1').matchAll(/(?:\(((?:\\.|[^\\)])*)\)|<([\da-fA-F\s]*)>)\s*Tj/gs);
  return [...strings].map(([, literal, hex = '']) =>
    textOf(
      literal === undefined
        ? Buffer.from(hex.replace(/\s/g, ''), 'hex')
        : Buffer.from(plain(literal), 'latin1'),
    ),
  );
}

function plain(literal: string): string {
  return literal.replace(/\\([0-7]{1,3}|.)/gs, (_, escaped: string) =>
    /^[0-7]/.test(escaped) ? String.fromCharCode(Number.parseInt(escaped, 8) & 0xff) : escaped,
  );
}

/** UTF-16 where it begins with U+FEFF, else a byte a character. */
function textOf(bytes: Buffer): string {
  if (bytes[0] !== 0xfe || bytes[1] !== 0xff) return bytes.toString('latin1');
  return new TextDecoder('utf-16be').decode(bytes);
}
