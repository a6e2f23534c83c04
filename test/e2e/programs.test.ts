import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zipSync } from 'fflate';
import { expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

it('a file waits for the program that reads it, and is taken up by itself when that is there', async () => {
  const directory = temporaryDirectory();
  const programs = join(directory, 'programs');
  mkdirSync(programs);
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    documents: { commands: { '.dwg': ['dwg2text', '{file}'] } },
  });
  const plan = join(directory, 'inbox', 'plan.dwg');
  const drawing = (word: string) => Buffer.from(`\0\x01${word}\xff`, 'latin1');
  writeFileSync(plan, drawing('Wendeltreppe'));
  // An archive is taken at once, with what can be read of it.
  const archive = join(directory, 'inbox', 'plans.zip');
  writeFileSync(archive, zipSync({ 'cellar.dwg': drawing('Gewoelbe') }));
  const env = { PATH: `${programs}:${process.env.PATH}` };
  const ask = async (...args: readonly string[]) =>
    (await peersync([...args, '-c', config], { env })).stdout;
  const missing = /note +other programs: files that end in \.dwg: skipped, because dwg2text is not/;
  expect(await ask('check')).toMatch(missing);
  const daemon = new Running(['run', '-c', config], { env });
  await until(async () => /^status +skipped/m.test(await ask('why', plan)), 'it is skipped');
  expect(await ask('why', plan)).toMatch(/^reason .*dwg2text.*\[NO_HELPER\]$/m);
  await until(async () => /^status +confirmed/m.test(await ask('why', archive)), 'it is confirmed');
  expect(await ask('why', archive)).toContain('It is read again by itself when that is there.');
  const script = '#!/bin/sh\ntr -cd "A-Za-z" < "$1"\n';
  writeFileSync(join(programs, 'dwg2text'), script, { mode: 0o755 });
  expect(await ask('reload')).toContain('programs that read documents: found dwg2text');
  await until(async () => /^status +confirmed/m.test(await ask('why', plan)), 'it is confirmed');
  expect(await ask('why', plan)).toMatch(/found 1 word\. Reading it took \d+m?s\.$/m);
  expect(await ask('search', 'Wendeltreppe')).toContain('1 of 1 result.');
  await until(
    async () => (await ask('search', 'Gewoelbe')).includes('1 of 1 result.'),
    'the archive is read again',
  );
  await until(async () => /^status +confirmed/m.test(await ask('why', archive)), 'it is confirmed');
  expect(await ask('why', archive)).not.toContain('read again by itself');
  expect(await ask('check')).not.toMatch(missing);
  expect((await daemon.kill('SIGTERM')).code).toBe(0);
}, 60_000);
