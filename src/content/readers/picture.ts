import type { ExtractedBy } from '../../lib/file.js';
import { HEAD_BYTES, signedType } from '../signatures.js';
import { typeName } from '../type-names.js';
import {
  type DocumentReader,
  type Extract,
  isReadWhole,
  joinHyphenated,
  type ReadContext,
  TextCollector,
} from './document-reader.js';
import { pictureMetadata } from './picture-metadata.js';
import { pictureSizes } from './picture-size.js';
import { lackOf, noOcr, type PixelSize, pageList, Scan } from './scan.js';

/** A picture within another document is a logo or an icon if a side has fewer pixels than this. */
const MIN_SIDE = 100;
/** It is one as well if it has fewer bytes and fewer pixels than these. */
const MIN_BYTES = 20 * 1024;
const MIN_PIXELS = 1_000_000;

/**
 * Pictures (PNG, JPEG, TIFF, WebP, BMP): their text is what their metadata say, and the words that
 * OCR finds on them.
 */
export const picture: DocumentReader = {
  name: 'picture',
  read: async (bytes, context): Promise<Extract> => {
    if (context.depth > 0 && isDecoration(bytes)) return { text: '' };
    const sizes = pictureSizes(bytes);
    const { author, date, description, keywords, title } = await pictureMetadata(bytes);
    const said = [description, keywords.join(', ')].filter(Boolean).join('\n\n');
    const { found, text } = await readPages(bytes, sizes, said || title || '', context);
    return { text: [said, text].join('\n\n').trim() || title || '', title, author, date, found };
  },
};

function isDecoration(bytes: Uint8Array): boolean {
  try {
    const [{ height, width } = { height: 0, width: 0 }] = pictureSizes(bytes);
    if (width < MIN_SIDE || height < MIN_SIDE) return true;
    return bytes.length < MIN_BYTES && width * height < MIN_PIXELS;
  } catch {
    return bytes.length < MIN_BYTES;
  }
}

/**
 * Reads the words on each page of a picture.
 *
 * @param said the words of its metadata
 * @throws DocumentError if there are no words at all, and a page could not be read
 */
async function readPages(
  bytes: Uint8Array,
  sizes: readonly PixelSize[],
  said: string,
  context: ReadContext,
): Promise<{ readonly text: string; readonly found: Partial<ExtractedBy> }> {
  const { depth, name, ocr, onPage, tools } = context;
  const pages = sizes.length;
  if (!isReadWhole(context)) return { text: '', found: { pages } };
  if (ocr === undefined) {
    tools?.lacks.add('ocr');
    if (said === '' && depth === 0)
      throw noOcr(typeName(name, bytes) ?? 'a picture', tools?.programs);
    const leftOut = `The words on it were not read, because ${lackOf(tools?.programs).missing}.`;
    return { text: '', found: { pages, leftOut } };
  }
  const isTiff = signedType(bytes.subarray(0, HEAD_BYTES))?.type === 'image/tiff';
  // The page of a picture that is a document of its own is stored with its text.
  const isStored = depth > 0 || pages > 1;
  const scan = new Scan(ocr, isTiff ? 'tiff' : 'picture', () => bytes, isStored);
  const text = new TextCollector();
  try {
    for (const [i, size] of sizes.entries()) {
      text.add(`${(await scan.pageOfPicture(i + 1, size)) ?? ''}\n\n`);
      onPage({ page: i + 1, pages });
    }
  } finally {
    scan.close();
  }
  const whole = joinHyphenated(text.end());
  const { failure, leftOut, unread } = scan;
  if (whole === '' && said === '' && failure !== undefined && depth === 0) throw failure;
  return {
    text: whole,
    found: {
      pages,
      ...(unread.length > 0 && pages > 1 && { unreadPages: pageList(unread) }),
      ...(leftOut !== undefined && { leftOut }),
    },
  };
}
