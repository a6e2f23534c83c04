import { decodeWords } from 'postal-mime';
import { decoderOf } from '../encoding.js';

/** Header fields: at the start of a message, or after a line that separates its parts. */
const HEADERS = /(?:^(?:From [^\n]*\n)?|\n--[^\n]*\n)((?:[!-9;-~]+:[^\n]*\n(?:[ \t][^\n]*\n)*)+)/g;
const TYPE = /^content-type:\s*([^\s;]+)/im;
const CHARSET = /[\s;]charset\s*=\s*"?([^\s";]+)/i;
const NAMES = /[\s;](?:file)?name\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))/gi;
/** Unicode is recognised without a declaration. */
const UNICODE = /^(?:utf-?8|us-ascii)$/;

interface Part {
  readonly type: string;
  readonly charset: string;
  readonly names: readonly string[];
}

/** The encodings that a message declares for its parts. They are looked up when they matter. */
export class DeclaredCharsets {
  #parts: readonly Part[] | undefined;

  constructor(private readonly message: Uint8Array) {}

  /**
   * Returns the text of a part by the encoding that is declared for it.
   *
   * @param isKnown whether the encoding is known otherwise. Only the declaration of the part of
   *   this very name counts then; else also the only one for parts of its type
   * @returns undefined if there is no such declaration, or if it is wrong
   */
  textOf(
    content: Uint8Array,
    { name, type }: { readonly name: string; readonly type: string },
    isKnown: boolean,
  ): string | undefined {
    this.#parts ??= partsOf(this.message);
    const own = this.#parts.find(({ names }) => name !== '' && names.includes(name));
    if (own !== undefined) return decoded(content, own.charset);
    const possible = this.#parts.filter(
      (part) => part.type === type && !UNICODE.test(part.charset),
    );
    const [charset, ...others] = new Set(possible.map((part) => part.charset));
    if (isKnown || charset === undefined || others.length > 0) return undefined;
    return decoded(content, charset);
  }
}

function partsOf(message: Uint8Array): readonly Part[] {
  const { buffer, byteLength, byteOffset } = message;
  const text = Buffer.from(buffer, byteOffset, byteLength).toString('latin1');
  return [...text.matchAll(HEADERS)].flatMap(([, headers = '']) => {
    const charset = CHARSET.exec(headers)?.[1]?.toLowerCase();
    if (charset === undefined) return [];
    const names = [...headers.matchAll(NAMES)].map(([, quoted, plain = '']) =>
      decodeWords(quoted?.replace(/\\(.)/g, '$1') ?? plain),
    );
    return [{ type: TYPE.exec(headers)?.[1]?.toLowerCase() ?? '', charset, names }];
  });
}

/** @returns undefined if there is no such encoding, or the bytes are not in it */
function decoded(bytes: Uint8Array, charset: string): string | undefined {
  try {
    const decoder = new TextDecoder(charset, { fatal: true });
    if (decoder.encoding === 'windows-1252') return decoderOf('windows-1252').decode(bytes);
    return decoder.decode(bytes);
  } catch {
    return undefined;
  }
}
