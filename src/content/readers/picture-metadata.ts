import { z } from 'zod';
import { HtmlParser } from '../../lib/html-parser.js';
import { dateOf } from './document-reader.js';

/** The metadata of a picture that describe it. Places are left out. */
export interface PictureMetadata {
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly keywords: readonly string[];
  readonly author: string | undefined;
  /** When it was taken or drawn, in ms since the epoch. */
  readonly date: number | undefined;
}

/** Maximum number of characters of one field. */
const MAX_FIELD = 10_000;
/** Maximum size of a compressed field when it is unpacked, in bytes. */
const MAX_UNPACKED = 2 ** 20;

/** The fields of EXIF that are read. */
const EXIF = [
  'Artist',
  'DateTime',
  'DateTimeOriginal',
  'ImageDescription',
  'OffsetTime',
  'OffsetTimeOriginal',
  'XPAuthor',
  'XPComment',
  'XPKeywords',
  'XPSubject',
  'XPTitle',
];
/** The fields of IPTC that are read. */
const IPTC = ['By-line', 'Caption/Abstract', 'Headline', 'Keywords', 'Object Name'];

/** Descriptions that cameras and programs write by themselves. */
const AUTOMATIC =
  /^(?:(?:olympus|konica|minolta|samsung|sony|fujifilm|kodak|nikon|canon|vivitar)?[ \w]*digital camera|sony dsc|dcim\S*|(?:dsc|img|dji|pxl)[_-]?\d\S*|screenshot|(?:created|made) with .*|file source:.*)$/i;

/**
 * Reads the metadata of a picture: EXIF, IPTC, XMP and the texts of PNG. A picture without any, or
 * with damaged ones, has none.
 */
export async function pictureMetadata(bytes: Uint8Array): Promise<PictureMetadata> {
  const tags = await tagsOf(bytes);
  const all = (...names: string[]) => names.flatMap((name) => tags.get(name) ?? []);
  const first = (...names: string[]) => all(...names)[0];
  const title = first(
    'dc:title',
    'photoshop:Headline',
    'Object Name',
    'Headline',
    'XPTitle',
    'title',
  );
  const description = first(
    'dc:description',
    'Caption/Abstract',
    'ImageDescription',
    'XPComment',
    'XPSubject',
    'description',
    'comment',
  );
  const listed = all('XPKeywords', 'keywords').flatMap((list) => list.split(/[;,]/));
  const keywords = [...all('dc:subject', 'Keywords'), ...listed].map((word) => word.trim());
  return {
    title,
    description: description === title ? undefined : description,
    keywords: [...new Set(keywords)].filter((word) => word !== ''),
    author: first('dc:creator', 'By-line', 'Artist', 'XPAuthor', 'author'),
    date:
      exifDate(first('DateTimeOriginal'), first('OffsetTimeOriginal')) ??
      dateOf(first('photoshop:DateCreated', 'xmp:CreateDate', 'creation time')) ??
      exifDate(first('DateTime'), first('OffsetTime')),
  };
}

/** A field, as the library has it. */
const FIELD = z.object({ description: z.string() });

/** Returns the texts of a picture, by the name of their field. */
async function tagsOf(bytes: Uint8Array): Promise<ReadonlyMap<string, readonly string[]>> {
  const tags = new Map<string, string[]>();
  const add = (name: string, value = '') => {
    const text = value.replace(/\0/g, '').trim().slice(0, MAX_FIELD);
    if (text === '' || AUTOMATIC.test(text)) return;
    const texts = tags.get(name) ?? [];
    tags.set(name, [...texts, text]);
  };
  const { default: reader } = await import('exifreader');
  const packets: string[] = [];
  try {
    // The library ignores the offset of a view in its buffer in some places.
    const { buffer } = bytes.byteOffset === 0 ? bytes : Uint8Array.from(bytes);
    const { exif, iptc, pngText } = await reader.loadView(new DataView(buffer, 0, bytes.length), {
      async: true,
      expanded: true,
      includeTags: { exif: EXIF, iptc: IPTC, png: true, xmp: true },
      decompress: { maxDecompressedSize: MAX_UNPACKED },
      // Takes the XML, so that no parser of trees is needed.
      domParser: {
        parseFromString: (xml) => {
          packets.push(xml);
          throw new Error('it is parsed later');
        },
      },
    });
    // A field may be there several times.
    for (const [name, fields] of Object.entries({ ...exif, ...iptc }))
      for (const field of [fields].flat()) add(name, FIELD.safeParse(field).data?.description);
    // The name of a text may be followed by its language: `Title (de)`.
    for (const [name, { description }] of Object.entries(pngText ?? {}))
      add(name.replace(/ \(.*\)$/, '').toLowerCase(), description);
  } catch {
    // It has no metadata, or they are damaged.
  }
  for (const packet of packets) readXmp(packet, add);
  return tags;
}

/** The fields of XMP that are read. Every program uses these prefixes. */
const XMP = new Set([
  'dc:creator',
  'dc:description',
  'dc:subject',
  'dc:title',
  'photoshop:DateCreated',
  'photoshop:Headline',
  'xmp:CreateDate',
]);

/** Reads a packet of XMP: fields are attributes, elements, or lists of elements. */
function readXmp(xml: string, add: (name: string, value: string) => void): void {
  let field: string | undefined;
  let text = '';
  const end = () => {
    if (field !== undefined) add(field, text);
    text = '';
  };
  const parser = new HtmlParser(
    {
      onopentag: (name, attributes) => {
        for (const [attribute, value] of Object.entries(attributes))
          if (XMP.has(attribute)) add(attribute, value);
        if (XMP.has(name)) field = name;
        if (XMP.has(name) || name === 'rdf:li') text = '';
      },
      ontext: (piece) => {
        text += piece;
      },
      onclosetag: (name) => {
        if (name === 'rdf:li' || name === field) end();
        if (name === field) field = undefined;
      },
    },
    { xmlMode: true },
  );
  parser.write(xml);
  parser.end();
}

/** Parses a date of EXIF, `2024:05:17 13:05:00`, in UTC unless there is an offset from it. */
function exifDate(text: string | undefined, offset = 'Z'): number | undefined {
  const [, year, month, day, time] =
    /^(\d{4}):(\d\d):(\d\d) (\d\d:\d\d:\d\d)/.exec(text ?? '') ?? [];
  return year === undefined ? undefined : dateOf(`${year}-${month}-${day}T${time}${offset}`);
}
