import { zipped } from '../content/documents.js';

/** Makers of the files of the corpus that are not plain text. */

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** A Word document with a title. */
export function docxOf(title: string, paragraphs: readonly string[]): Uint8Array {
  const body = [title, ...paragraphs].map(
    (text) => `<w:p><w:r><w:t>${escaped(text)}</w:t></w:r></w:p>`,
  );
  return zipped({
    '[Content_Types].xml': '<Types/>',
    'word/document.xml': `<?xml version="1.0"?><w:document><w:body>${body.join('')}</w:body></w:document>`,
    'docProps/core.xml': `<cp:coreProperties><dc:title>${escaped(title)}</dc:title></cp:coreProperties>`,
  });
}

/** A message in UTF-8. */
export function emlOf(mail: {
  readonly subject: string;
  readonly from: string;
  readonly date: string;
  readonly text: string;
}): Uint8Array {
  const word = (text: string) => `=?UTF-8?B?${Buffer.from(text).toString('base64')}?=`;
  return Buffer.from(
    `From: ${word(mail.from)} <mail@example.org>
Subject: ${word(mail.subject)}
Date: ${new Date(`${mail.date}T09:30:00Z`).toUTCString()}
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

${mail.text}`.replaceAll('\n', '\r\n'),
  );
}
