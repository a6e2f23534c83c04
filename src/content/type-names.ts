import mime from 'mime';
import { ARCHIVE_NAME, HEAD_BYTES, signedType } from './signatures.js';

/**
 * The types of files that no reader reads, and of pictures, as people call them, by media type.
 */
const NAMES: Readonly<Record<string, string>> = {
  'application/gzip': 'a gzip file (.gz)',
  'application/java-archive': 'a Java archive (.jar)',
  'application/msword': 'an old Word document (.doc)',
  'application/postscript': 'a PostScript file (.ps)',
  'application/vnd.android.package-archive': 'an Android package (.apk)',
  'application/vnd.ms-excel': 'an old Excel workbook (.xls)',
  'application/vnd.ms-outlook': 'an Outlook message (.msg)',
  'application/vnd.ms-powerpoint': 'an old PowerPoint presentation (.ppt)',
  'application/vnd.rar': 'a RAR archive',
  'application/x-7z-compressed': 'a 7z archive',
  'application/x-archive': 'a library or a Debian package',
  'application/x-bzip2': 'a bzip2 file (.bz2)',
  'application/x-tar': 'a tar archive under another name than .tar',
  'application/x-xz': 'an xz file (.xz)',
  'application/zip': 'a ZIP archive under another name than .zip',
  'image/bmp': 'a picture (BMP)',
  'image/gif': 'a picture (GIF)',
  'image/jpeg': 'a picture (JPEG)',
  'image/png': 'a picture (PNG)',
  'image/tiff': 'a picture (TIFF)',
  'image/vnd.djvu': 'a DjVu document (.djvu)',
  'image/vnd.dwg': 'an AutoCAD drawing (.dwg)',
  'image/webp': 'a picture (WebP)',
};

/** The names of the other types, by the first half of the media type. */
const CLASSES: Readonly<Record<string, string>> = {
  audio: 'a sound recording',
  font: 'a font',
  image: 'a picture',
  video: 'a video',
};

/**
 * Returns what people call a file: by its first bytes, then by its name.
 *
 * @param head the first `HEAD_BYTES` of the file, or all of a shorter one
 * @returns undefined if neither shows a type that has a name here
 */
export function typeName(path: string, head: Uint8Array): string | undefined {
  const signed = signedType(head.subarray(0, HEAD_BYTES));
  if (signed !== undefined && !signed.isContainer) return nameOf(signed.type);
  const named = nameOf(mime.getType(`/${path}`) ?? '');
  // An archive only by its name is none, or a damaged one.
  if (signed === undefined && ARCHIVE_NAME.test(path)) return undefined;
  // Many programs write files with the signature of old Word documents.
  return named ?? (signed?.type === OLD_OFFICE ? undefined : nameOf(signed?.type ?? ''));
}

const OLD_OFFICE = 'application/msword';

function nameOf(type: string): string | undefined {
  return NAMES[type] ?? CLASSES[type.slice(0, type.indexOf('/'))];
}
