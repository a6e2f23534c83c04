import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ProgramFinder, type ProgramSettings } from '../../src/content/helpers/finder.js';
import { localeLanguages } from '../../src/content/helpers/languages.js';
import { programsFor } from '../../src/content/helpers/programs.js';
import { temporaryDirectory } from '../support/temp.js';

const SETTINGS: ProgramSettings = {
  ocr: 'auto',
  dpi: 300,
  maxPages: 1000,
  pageTimeout: 120_000,
  commands: {},
};

const POSTSCRIPT = { kind: 'helper', extension: '.ps', onlyWords: false } as const;

/** A directory of programs, alone on the PATH. */
function machine(settings: Partial<ProgramSettings> = {}, locale = {}) {
  const PATH = temporaryDirectory();
  const install = (name: string, script = 'exit 0') => {
    writeFileSync(join(PATH, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(PATH, name), 0o755);
  };
  const finder = new ProgramFinder(() => ({ ...SETTINGS, ...settings }), { PATH, ...locale });
  return { finder, install, PATH };
}

const LANGUAGES = (...names: readonly string[]) =>
  `echo 'List of available languages in "/usr/share" (${names.length}):'; printf '%s\\n' ${names.join(' ')}`;

it('OCR is used when tesseract is there, with the languages of the locale', async () => {
  const { finder, install, PATH } = machine({}, { LANG: 'de_AT.UTF-8', LANGUAGE: 'de:en:xx' });
  await finder.refresh();
  expect(await finder.refresh()).toBe(false);
  expect(finder.current).toMatchObject({ noOcr: 'missing', commands: {} });
  install('tesseract', LANGUAGES('deu', 'eng', 'fra', 'osd'));
  expect(await finder.refresh()).toBe(true);
  expect(finder.current.ocr).toEqual({
    tesseract: join(PATH, 'tesseract'),
    languages: 'deu+eng',
    findsRotation: true,
    dpi: 300,
    maxPages: 1000,
    pageTimeoutMs: 120_000,
  });
  install('pdftoppm');
  expect(await finder.refresh()).toBe(true);
  expect(finder.current.ocr?.pdftoppm).toBe(join(PATH, 'pdftoppm'));
  expect(await finder.refresh()).toBe(false);
});

it('a program that was updated or removed since the last look is noticed', async () => {
  const { finder, install, PATH } = machine();
  install('catdoc');
  await finder.refresh();
  expect(await finder.isCurrent()).toBe(true);
  install('catdoc', 'exit 7 # another version');
  expect(await finder.isCurrent()).toBe(false);
  expect(await finder.refresh()).toBe(true);
  expect(await finder.isCurrent()).toBe(true);
  rmSync(join(PATH, 'catdoc'));
  expect(await finder.isCurrent()).toBe(false);
});

it('an update of the program that a script runs is noticed', async () => {
  const { finder, install, PATH } = machine();
  install('ps2txt');
  install('gs');
  await finder.refresh();
  const before = programsFor(POSTSCRIPT, finder.current);
  install('gs', 'exit 7 # another version');
  expect(await finder.isCurrent()).toBe(false);
  expect(await finder.refresh()).toBe(true);
  expect(programsFor(POSTSCRIPT, finder.current)).not.toBe(before);
  rmSync(join(PATH, 'gs'));
  expect(await finder.isCurrent()).toBe(false);
});

it('English is used where the locale names no language that is installed', async () => {
  const { finder, install } = machine({}, { LANG: 'de_DE.UTF-8' });
  install('tesseract', LANGUAGES('eng', 'osd'));
  await finder.refresh();
  expect(finder.current.ocr?.languages).toBe('eng');
});

it.each<[string, Partial<ProgramSettings>, string[], string]>([
  ['off', { ocr: 'off' }, ['eng'], 'off'],
  ['without a language', {}, ['osd'], 'no language'],
  ['without the language of the configuration', { languages: ['deu'] }, ['eng'], 'no language'],
])('OCR is %s', async (_, settings, languages, noOcr) => {
  const { finder, install } = machine(settings);
  install('tesseract', LANGUAGES(...languages));
  await finder.refresh();
  expect(finder.current).toMatchObject({ noOcr });
  expect(finder.current.ocr).toBeUndefined();
});

it('old formats are read by the programs that are installed', async () => {
  const { finder, install, PATH } = machine();
  install('catdoc');
  await finder.refresh();
  expect(Object.keys(finder.current.commands)).toEqual(['.doc', '.dot']);
  const found = finder.found().find(({ program }) => program === 'catdoc');
  expect(found).toMatchObject({ path: join(PATH, 'catdoc'), package: 'catdoc' });
  expect(finder.found().find(({ program }) => program === 'catppt')?.path).toBeUndefined();
  rmSync(join(PATH, 'catdoc'));
  expect(await finder.refresh()).toBe(true);
  expect(finder.current.commands).toEqual({});
});

it('a program of the configuration comes before the usual one, and is known while it is missing', async () => {
  const { finder, install, PATH } = machine({ commands: { '.DOC': ['antiword', '{file}'] } });
  install('catdoc');
  await finder.refresh();
  const known = { name: 'antiword', args: ['{file}'], output: 'text', isConfigured: true };
  expect(finder.current.commands['.doc']).toEqual(known);
  install('antiword');
  await finder.refresh();
  expect(finder.current.commands['.doc']).toEqual({ ...known, program: join(PATH, 'antiword') });
});

it('a file that cannot be executed, and a relative directory of the PATH, are no programs', async () => {
  const { finder, install, PATH } = machine({}, { PATH: '.:bin' });
  install('catdoc');
  await finder.refresh();
  expect(finder.current.commands).toEqual({});
  const other = machine();
  writeFileSync(join(other.PATH, 'catdoc'), 'text');
  await other.finder.refresh();
  expect(other.finder.current.commands).toEqual({});
  expect(PATH).not.toBe(other.PATH);
});

it.each([
  [{ LANG: 'C.UTF-8' }, []],
  [{}, []],
  [{ LANG: 'pt_BR.UTF-8' }, ['por']],
  [{ LANG: 'zh_TW.UTF-8' }, ['chi_tra']],
  [{ LANG: 'de_DE', LC_ALL: 'fr_FR@euro' }, ['fra']],
])('the languages of %j are %j', (variables, languages) => {
  expect(localeLanguages(variables)).toEqual(languages);
});
