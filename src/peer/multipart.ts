import { randomBytes } from 'node:crypto';
import { Base64Pieces, base64Length, ofBytes } from './base64.js';
import type { Body } from './body.js';
import { HELD_BYTES, inPieces, StreamedBody, type StreamedText } from './streamed-body.js';
import type { Text } from './text.js';

/** One field, in the order in which it is to be sent: a text, or a content that is sent in base64. */
export type MultipartField =
  | { readonly name: string; readonly value: string }
  | {
      readonly name: string;
      readonly content: Text;
      /** The number of the item that it belongs to, named in errors. */
      readonly item?: number;
    };

/**
 * Encodes fields as `multipart/form-data` (RFC 7578), all of them as text in UTF-8 and none as a file.
 *
 * What is in memory is encoded at once. A TextSource is read only when the body is sent; memory does not grow with it.
 * The boundary occurs in no field: texts are looked through, and base64 has no `-`.
 *
 * @param url of the request, for errors
 * @throws TypeError for content that is encoded for another way
 */
export function multipartBody(fields: readonly MultipartField[], url: string): Body {
  const boundary = boundaryFor(fields);
  const parts: (Buffer | StreamedText)[] = [];
  let held: Uint8Array[] = [];
  for (const field of fields) {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quotable(field.name)}"\r\n\r\n`;
    held.push(Buffer.from(head));
    if ('value' in field) held.push(Buffer.from(field.value));
    else {
      const content = encodedContent(field.content, field.item);
      if ('source' in content) {
        parts.push(Buffer.concat(held), content);
        held = [];
      } else held.push(content);
    }
    held.push(LINE_END);
  }
  held.push(Buffer.from(`--${boundary}--\r\n`));
  parts.push(Buffer.concat(held));
  return new StreamedBody(`multipart/form-data; boundary=${boundary}`, parts, url);
}

const LINE_END = Buffer.from('\r\n');

function encodedContent(content: Text, item: number | undefined): Uint8Array | StreamedText {
  if ('encoded' in content) {
    if (content.encoding !== 'base64') throw new TypeError(`base64 is sent, and not ${content.encoding}`);
    return content.encoded;
  }
  if (content instanceof Uint8Array && content.length <= HELD_BYTES) return ofBytes(content);
  const source = content instanceof Uint8Array ? inPieces(content) : content;
  return { source, length: base64Length(source.size), item, encoder: () => new Base64Pieces() };
}

function boundaryFor(fields: readonly MultipartField[]): string {
  for (;;) {
    const boundary = `peersync-${randomBytes(12).toString('hex')}`;
    if (!fields.some((field) => 'value' in field && field.value.includes(boundary))) return boundary;
  }
}

/** As browsers do it. */
function quotable(name: string): string {
  return name.replace(/["\r\n]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`);
}
