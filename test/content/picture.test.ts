import { zipSync } from 'fflate';
import { describe, expect, it } from 'vitest';
import { pictureMetadata } from '../../src/content/readers/picture-metadata.js';
import { pictureSizes } from '../../src/content/readers/picture-size.js';
import { readDocument } from '../../src/content/readers/registry.js';
import { documentKind } from '../../src/content/signatures.js';
import { FakeOcr, OCR, toolsWith } from '../support/ocr-programs.js';
import { Random } from '../support/random.js';
import { jpegOf, oneColumn, pictureOf } from './corpus/pages.js';
import { bmp, cropped, type Picture, png, tiff, turned, webp } from './corpus/pictures.js';
import { eml } from './documents.js';
import { exifOf, iptcOf, jpegWith, pngWith, segment, tiffOf } from './metadata.js';

/** A picture in one shade. */
const plain = (width: number, height: number, shade = 255): Picture => ({
  width,
  height,
  pixels: Buffer.alloc(width * height, shade),
});
/** A JPEG with the size of 8 by 8 pixels and without its pixels. */
const JPEG = Buffer.from('ffd8ffc0000b080008000801011100ffd9', 'hex');
const AT = Date.parse('2024-05-17T13:05:00Z');

const EXIF = 0xe1;
const exif = (...of: Parameters<typeof exifOf>) => segment(EXIF, 'Exif\0\0', exifOf(...of));
const xmp = (content: string) =>
  segment(
    EXIF,
    'http://ns.adobe.com/xap/1.0/\0',
    Buffer.from(`<x:xmpmeta><rdf:RDF>${content}</rdf:RDF></x:xmpmeta>`),
  );

describe.skipIf(OCR === undefined)('the words on a picture', () => {
  const read = async (bytes: Uint8Array, name: string) =>
    await readDocument(bytes, name, { tools: toolsWith({ ...(OCR && { ocr: OCR }) }) });
  const words = 'An invoice for seven hundred bricks';
  const drawn = (text: string) => cropped(pictureOf(oneColumn(text)), 500);

  it.each([
    ['a.png', png],
    ['a.tiff', tiff],
    ['a.bmp', bmp],
    ['a.webp', webp],
  ])('are read: %s', async (name, make) => {
    expect(await read(make(drawn(words)), name)).toMatchObject({
      reader: 'picture',
      text: words,
      found: { pages: 1, ocrPages: 1, confidence: expect.toSatisfy((mean) => mean > 85) },
    });
  });

  it('are read: a.jpg', async () => {
    expect(await read(jpegOf(oneColumn(words)).jpeg, 'a.jpg')).toMatchObject({ text: words });
  });

  it.runIf(OCR?.findsRotation)('are read when it lies on its side', async () => {
    const text = Array.from({ length: 12 }, () => words).join(' ');
    const found = await read(png(turned(pictureOf(oneColumn(text)), 1)), 'a.png');
    expect(found?.text).toContain(words);
  });

  it('are read on each page of a TIFF', async () => {
    const pages = [drawn('The first page of a fax'), plain(400, 300), drawn('The last page of it')];
    const found = await read(tiffOf(pages), 'fax.tif');
    expect(found).toMatchObject({
      text: 'The first page of a fax\n\nThe last page of it',
      found: { pages: 3, ocrPages: 2 },
    });
  });

  it('may be none', async () => {
    const random = new Random(1);
    const shades = plain(600, 400);
    for (let i = 0; i < shades.pixels.length; i += 1)
      shades.pixels[i] = 90 + Math.round(60 * Math.sin(i / 4000)) + random.between(0, 40);
    expect(await read(png(shades), 'photo.png')).toMatchObject({ text: '' });
  });

  it('are none if the picture is damaged', async () => {
    const cut = png(drawn(words)).subarray(0, 500);
    await expect(read(cut, 'a.png')).rejects.toMatchObject({ code: 'DOCUMENT_BROKEN' });
    await expect(read(cut.subarray(0, 20), 'a.png')).rejects.toMatchObject({
      message: 'No text can be read from the file: it is damaged (its header is cut off).',
    });
  });
});

describe('the metadata of a picture', () => {
  it.each([
    [
      'EXIF',
      jpegWith(
        JPEG,
        exif({
          270: 'A brick kiln in Köln',
          315: 'Ada L.',
          306: '2024:05:17 13:05:00',
        }),
      ),
      { description: 'A brick kiln in Köln', author: 'Ada L.', date: AT },
    ],
    [
      'IPTC',
      jpegWith(
        JPEG,
        segment(
          0xed,
          'Photoshop 3.0\0',
          iptcOf([
            [5, 'Kiln'],
            [25, 'bricks'],
            [25, 'fire'],
            [80, 'Ada L.'],
            [120, 'A brick kiln'],
          ]),
        ),
      ),
      {
        title: 'Kiln',
        description: 'A brick kiln',
        keywords: ['bricks', 'fire'],
        author: 'Ada L.',
      },
    ],
    [
      'XMP',
      jpegWith(
        JPEG,
        xmp(
          `<rdf:Description photoshop:DateCreated="2024-05-17T15:05:00+02:00">
             <dc:title><rdf:Alt><rdf:li xml:lang="x-default">Ziegelöfen &amp; more</rdf:li><rdf:li xml:lang="en">Kilns</rdf:li></rdf:Alt></dc:title>
             <dc:description><rdf:Alt><rdf:li>A brick kiln</rdf:li></rdf:Alt></dc:description>
             <dc:subject><rdf:Bag><rdf:li>bricks</rdf:li><rdf:li>fire</rdf:li></rdf:Bag></dc:subject>
             <dc:creator><rdf:Seq><rdf:li>Ada L.</rdf:li></rdf:Seq></dc:creator>
           </rdf:Description>`,
        ),
      ),
      {
        title: 'Ziegelöfen & more',
        description: 'A brick kiln',
        keywords: ['bricks', 'fire'],
        author: 'Ada L.',
        date: AT,
      },
    ],
    [
      'texts of a PNG',
      pngWith(png(plain(8, 8)), {
        Title: 'Ziegelöfen',
        Description: 'Печь для кирпича',
        Author: 'Ada L.',
        'Creation Time': 'Fri, 17 May 2024 13:05:00 GMT',
        Software: 'a program',
      }),
      { title: 'Ziegelöfen', description: 'Печь для кирпича', author: 'Ada L.', date: AT },
    ],
    [
      'compressed texts of a PNG',
      pngWith(png(plain(8, 8)), { Description: 'a long text '.repeat(20) }),
      { description: 'a long text '.repeat(20).trim() },
    ],
    [
      'EXIF of a TIFF',
      exifOf({ 270: 'A brick kiln', 306: '2024:05:17 13:05:00' }),
      { description: 'A brick kiln', date: AT },
    ],
    ['none', JPEG, {}],
    ['damaged ones', jpegWith(JPEG, segment(EXIF, 'Exif\0\0', Buffer.from('II*\0\xff'))), {}],
  ])('are read: %s', async (_what, bytes, expected) => {
    const nothing = {
      title: undefined,
      description: undefined,
      keywords: [],
      author: undefined,
      date: undefined,
    };
    expect(await pictureMetadata(bytes)).toEqual({ ...nothing, ...expected });
    // Also within a larger buffer.
    const within = Buffer.concat([Buffer.from('before'), bytes]).subarray(6);
    expect(await pictureMetadata(within)).toEqual({ ...nothing, ...expected });
  });

  it('are its text, and places are left out', async () => {
    const bytes = jpegWith(
      JPEG,
      exif({ 270: 'A brick kiln' }, 51),
      xmp(
        '<rdf:Description exif:GPSLatitude="51,30.5N"><dc:title>Kiln</dc:title>' +
          '<dc:subject><rdf:Bag><rdf:li>fire</rdf:li></rdf:Bag></dc:subject></rdf:Description>',
      ),
    );
    const tools = toolsWith({});
    const read = await readDocument(bytes, 'a.jpg', { tools });
    expect([...tools.lacks]).toEqual(['ocr']);
    expect(read).toMatchObject({
      title: 'Kiln',
      text: 'A brick kiln\n\nfire',
      found: { pages: 1, leftOut: 'The words on it were not read, because no OCR is installed.' },
    });
    expect(JSON.stringify(read)).not.toContain('51');
  });

  it('may be a title only', async () => {
    const bytes = pngWith(png(plain(8, 8)), { Title: 'Kiln' });
    expect(await readDocument(bytes, 'a.png')).toMatchObject({ title: 'Kiln', text: 'Kiln' });
  });

  it.each(['OLYMPUS DIGITAL CAMERA', 'SONY DSC', 'Created with GIMP', 'DCIM\\100\\DJI_0001.JPG'])(
    'say nothing if a camera or a program wrote them by itself: %s',
    async (description) => {
      const bytes = jpegWith(JPEG, exif({ 270: description, 315: 'Ada L.' }));
      await expect(readDocument(bytes, 'a.jpg')).rejects.toMatchObject({ code: 'NO_OCR' });
    },
  );
});

describe('without OCR', () => {
  it.each([
    ['a.png', png(plain(8, 8)), 'a picture (PNG)'],
    ['a.jpg', JPEG, 'a picture (JPEG)'],
    ['a.tiff', tiff(plain(8, 8)), 'a picture (TIFF)'],
    ['a.webp', webp(plain(8, 8)), 'a picture (WebP)'],
    ['a.bmp', bmp(plain(8, 8)), 'a picture (BMP)'],
  ])('a picture is named as one: %s', async (name, bytes, what) => {
    await expect(readDocument(bytes, name)).rejects.toMatchObject({
      code: 'NO_OCR',
      message: `The file is ${what}, and no OCR is installed.`,
    });
  });
});

describe('a picture', () => {
  it('with more pixels than fit into memory is not read', async () => {
    const bytes = Buffer.from(png(plain(8, 8)));
    bytes.writeUInt32BE(20_000, 16);
    bytes.writeUInt32BE(20_000, 20);
    const fake = new FakeOcr();
    await expect(readDocument(bytes, 'a.png', { tools: fake.tools() })).rejects.toMatchObject({
      code: 'DOCUMENT_TOO_LARGE',
      message: expect.stringMatching(
        /it has 400 million pixels, and OCR reads up to 100 million\.$/,
      ),
    });
    const titled = pngWith(bytes, { Title: 'A map' });
    expect(await readDocument(titled, 'a.png', { tools: fake.tools() })).toMatchObject({
      text: 'A map',
      found: { leftOut: 'It has 400 million pixels, and OCR reads up to 100 million.' },
    });
    bytes.writeUInt32BE(40_000, 16);
    bytes.writeUInt32BE(20, 20);
    await expect(readDocument(bytes, 'a.png', { tools: fake.tools() })).rejects.toMatchObject({
      message: expect.stringMatching(/a side of it has more than 32767 pixels/),
    });
    expect(fake.calls).toEqual([]);
  });

  it('of many pages is read page by page', async () => {
    const fake = new FakeOcr('if [ "$page" = 1 ]; then exit 1; fi');
    const pages = [plain(300, 200), plain(300, 200), plain(400, 200), plain(20_000, 1)];
    const tools = fake.tools({ maxPages: 3 });
    const bytes = tiffOf(pages);
    expect(pictureSizes(bytes).map(({ width }) => width)).toEqual([300, 300, 400, 20_000]);
    expect(await readDocument(bytes, 'a.tif', { tools })).toMatchObject({
      text: 'Word0\n\nWord2',
      found: {
        pages: 4,
        ocrPages: 2,
        unreadPages: '2',
        leftOut: expect.stringMatching(
          /^OCR of a page fails, because .*\. OCR left out 1 page, because/,
        ),
      },
    });
  });

  it('is not read by OCR if only the words of the document are counted', async () => {
    const fake = new FakeOcr();
    const bytes = pngWith(png(plain(8, 8)), { Title: 'A map' });
    const read = { tools: fake.tools(), enoughCharacters: 4_000 };
    expect(await readDocument(bytes, 'a.png', read)).toMatchObject({ text: 'A map' });
    expect(fake.calls).toEqual([]);
  });

  it('in an archive or a message is read unless it is a logo or an icon', async () => {
    const random = new Random(1);
    const noise = (width: number, height: number) => {
      const picture = plain(width, height);
      for (let i = 0; i < picture.pixels.length; i += 1) picture.pixels[i] = random.between(0, 255);
      return png(picture);
    };
    const fake = new FakeOcr();
    const zip = zipSync({
      'photo.png': noise(400, 300),
      'logo.png': png(plain(400, 300)),
      'banner.png': noise(900, 90),
      // A page in black and white has few bytes.
      'fax.png': png(plain(1_200, 1_700)),
      'damaged.png': Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    });
    const read = await readDocument(zip, 'a.zip', { tools: fake.tools({ maxPages: 2 }) });
    expect(read).toMatchObject({
      text: 'photo.png\nWordpicture\n\nlogo.png\n\nbanner.png\n\nfax.png\nWordpicture\n\ndamaged.png',
      found: { ocrPages: 2 },
    });
    const letter = eml('words', { name: 'photo.png', bytes: noise(400, 300) });
    expect((await readDocument(letter, 'a.eml', { tools: fake.tools() }))?.text).toMatch(
      /photo\.png\n+Wordpicture$/,
    );
    // Without OCR, nothing is said about each of them.
    expect((await readDocument(zip, 'a.zip'))?.text).toBe(
      'photo.png\n\nlogo.png\n\nbanner.png\n\nfax.png\n\ndamaged.png',
    );
  });
});

it.each([
  ['a.png', png(plain(8, 8)), 'picture'],
  ['photo', JPEG, 'picture'],
  ['scans/page 1', tiff(plain(8, 8)), 'picture'],
  ['a.TIF', tiff(plain(8, 8)), 'picture'],
  // Raw photographs begin like a TIFF.
  ['a.nef', tiff(plain(8, 8)), undefined],
  ['a.BMP', bmp(plain(8, 8)), 'picture'],
  ['a.dat', bmp(plain(8, 8)), undefined],
  ['a.bmp', Buffer.from('no picture\0'), undefined],
  ['a.png', zipSync({}), undefined],
  ['a.gif', Buffer.from('GIF89a'), undefined],
])('%s is a picture by its first bytes, and some only by their names', (name, bytes, kind) => {
  expect(documentKind(name, bytes)).toBe(kind);
});

it.each([
  ['lossy', 'VP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\x30\0'],
  ['extended', 'VP8X\0\0\0\0\0\0\0\0\x3f\x01\0\x2f\0\0'],
])('the size of a WebP is in its header: %s', (_what, content) => {
  const bytes = Buffer.from(`RIFF\0\0\0\0WEBP${content}`, 'latin1');
  expect(pictureSizes(bytes)).toEqual([{ width: 320, height: 48 }]);
});

it('the size of a JPEG comes after other segments, and a loop of pages of a TIFF has an end', () => {
  const jpeg = jpegWith(JPEG, segment(EXIF, 'Exif\0\0', Buffer.alloc(300)));
  expect(pictureSizes(jpeg)).toEqual([{ width: 8, height: 8 }]);
  const loop = Buffer.from(tiff(plain(8, 8)));
  loop.writeUInt32LE(8, 8 + 2 + 12 * 10);
  expect(pictureSizes(loop)).toEqual([{ width: 8, height: 8 }]);
});
