import { expect, it } from 'vitest';
import { typeName } from '../../src/content/type-names.js';

const OLE = '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1';

it.each([
  ['a.doc', OLE, 'an old Word document (.doc)'],
  ['a.xls', OLE, 'an old Excel workbook (.xls)'],
  ['a.PPT', OLE, 'an old PowerPoint presentation (.ppt)'],
  ['a.msg', OLE, 'an Outlook message (.msg)'],
  ['project.mpp', OLE, undefined],
  ['holiday', '\x89PNG\r\n\x1a\n', 'a picture (PNG)'],
  ['a.doc', '\xff\xd8\xff\xe0', 'a picture (JPEG)'],
  ['a.7z', '7z\xbc\xaf\x27\x1c', 'a 7z archive'],
  ['a.jar', 'PK\x03\x04', 'a Java archive (.jar)'],
  ['a.whl', 'PK\x03\x04', 'a ZIP archive under another name than .zip'],
  ['a.gem', `a${'\0'.repeat(256)}ustar`, 'a tar archive under another name than .tar'],
  ['a.rar', 'Rar!\x1a\x07', 'a RAR archive'],
  ['a.mp3', '\x00\x01', 'a sound recording'],
  ['a.mkv', '\x00\x01', 'a video'],
  ['a.zip', 'damaged', undefined],
  ['unknown', '\x00\x01', undefined],
])('%s that begins with %j is %s', (name, begin, expected) => {
  expect(typeName(`/inbox/${name}`, Buffer.from(begin, 'latin1'))).toBe(expected);
});
