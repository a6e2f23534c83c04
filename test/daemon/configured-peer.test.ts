import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readCa } from '../../src/daemon/configured-peer.js';
import { makeCertificate } from '../support/certificate.js';
import { temporaryDirectory } from '../support/temp.js';

const { cert, key } = makeCertificate();
const bundle = `# ours - and theirs\n${cert}\n# an older one\n${makeCertificate().cert}`;

function readFrom(text: string): Promise<string> {
  const path = join(temporaryDirectory(), 'ca.pem');
  writeFileSync(path, text);
  return readCa(path);
}

it.each([
  ['one', cert],
  ['a bundle with words between', bundle],
  ['another label', cert.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE')],
])('a CA file is taken as it is: %s', async (_, text) => {
  expect(await readFrom(text)).toBe(text);
});

it.each([
  ['nothing', '', 'no certificate'],
  ['words', 'my certificate', 'no certificate'],
  ['a key', key, 'no certificate'],
  ['half of one', cert.slice(0, cert.length / 2), 'damaged or cut off'],
  ['half of the second', bundle.slice(0, -100), 'damaged or cut off'],
  ['one with a hole', cert.replace(/\n.{20}/, '\n'), 'damaged or cut off'],
])('a CA file with %s is refused', async (_, text, what) => {
  await expect(readFrom(text)).rejects.toMatchObject({
    code: 'CONFIG_CA',
    message: expect.stringContaining(what),
    exitCode: 2,
  });
});
