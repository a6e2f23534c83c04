import { markup } from './markup.js';
import { officeText } from './office.js';
import { pdfText } from './pdf.js';

/**
 * Returns the text that the peer reads in a document. Undefined if no parser can read it; the peer
 * then knows only the words of the URL.
 */
export interface Parsed {
  readonly title: string;
  readonly text: string;
  readonly doctype: 'h' | 't' | 'p' | 'o';
}

const BY_EXTENSION: Readonly<Record<string, string>> = {
  txt: 'text/plain',
  htm: 'text/html',
  html: 'text/html',
  pdf: 'application/pdf',
};

export function parse(
  url: string,
  contentType: string | undefined,
  data: Buffer,
): Parsed | undefined {
  const extension = /\.([a-z0-9]+)$/i.exec(url)?.[1]?.toLowerCase() ?? '';
  const [mime = '', ...parameters] = (contentType || BY_EXTENSION[extension] || '').split(';');
  const charset = /charset="?([^"; ]+)/i.exec(parameters.join(';'))?.[1];
  const type = mime.trim().toLowerCase();
  switch (type) {
    case 'text/plain':
      return filtered(data, charset, 't');
    case 'text/html':
    case 'application/xhtml+xml':
      return filtered(data, charset, 'h');
    case 'application/pdf': {
      const text = pdfText(data);
      return text === undefined ? undefined : { title: '', text, doctype: 'p' };
    }
    default: {
      const text = officeText(type, data);
      return text === undefined ? undefined : { title: '', text, doctype: 'o' };
    }
  }
}

/** Plain text too is read as if it were HTML. */
function filtered(data: Buffer, charset = 'utf-8', doctype: 'h' | 't'): Parsed | undefined {
  const read = markup(new TextDecoder(charset, { ignoreBOM: true }).decode(data));
  return read === undefined ? undefined : { ...read, doctype };
}
