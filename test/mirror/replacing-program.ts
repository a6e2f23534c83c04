import { replaceWhole } from '../../src/mirror/whole-file.js';

const [, , root = '', bytes = '', times = ''] = process.argv;

/** Replaces the file `a/b` below the root again and again: all its bytes are of one letter, the next one each time. */
for (let i = 0; i < Number(times); i += 1) {
  const letter = String.fromCharCode(97 + (i % 26));
  try {
    await replaceWhole({ root, path: 'a/b' }, content(letter), { versions: 2 });
    process.stdout.write(`${letter}\n`);
  } catch (error) {
    process.stdout.write(`${String((error as { code?: unknown }).code)}\n`);
  }
}

async function* content(letter: string): AsyncGenerator<string> {
  for (let left = Number(bytes); left > 0; left -= 65_536) yield letter.repeat(Math.min(65_536, left));
}
