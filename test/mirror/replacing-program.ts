import { replaceWhole } from '../../src/mirror/whole-file.js';

const [, , root = '', bytes = ''] = process.argv;

/** Writes the file `a/b` below the root, and says why it could not. */
const content = [Buffer.alloc(Number(bytes), 'x')];
await replaceWhole({ root, path: 'a/b' }, content as unknown as AsyncIterable<Uint8Array>).catch(
  (error) => process.stdout.write(`${error.code}\n`),
);
