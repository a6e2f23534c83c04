import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Command, NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { Abilities, differenceOf, programsDigest } from '../../src/fleet/abilities.js';
import { systemClock } from '../../src/lib/clock.js';
import { afterwards } from '../support/afterwards.js';
import { FakeClock } from '../support/fake-clock.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';

/** A machine with programs of its own. */
function machine() {
  const directory = temporaryDirectory();
  const install = (name: string, script: string) => {
    const path = join(directory, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return path;
  };
  /** OCR by programs of these versions. */
  const ocr = (version = '5.3.0', parts: Partial<Programs['ocr']> = {}): Programs => ({
    commands: {},
    ocr: {
      tesseract: install('tesseract', `[ "$1" = --version ] && echo "tesseract ${version}"`),
      pdftoppm: install('pdftoppm', 'echo "pdftoppm version 22.12.0" >&2'),
      languages: 'deu+eng',
      findsRotation: true,
      dpi: 300,
      maxPages: 500,
      pageTimeoutMs: 60_000,
      ...parts,
    },
  });
  /** A program of the configuration that reads `.dwg`. */
  const dwg = (script: string, parts: Partial<Command> = {}): Programs => ({
    ...NO_PROGRAMS,
    commands: {
      '.dwg': {
        name: 'dwg2text',
        program: install('dwg2text', script),
        args: ['{file}'],
        output: 'text',
        isConfigured: true,
        ...parts,
      },
    },
  });
  return { dwg, install, ocr };
}

/** Returns what differs between the programs of a worker and those of the owner. */
async function difference(worker: Programs, owner: Programs): Promise<string[]> {
  const abilities = new Abilities(systemClock);
  return differenceOf(await abilities.of(worker), await abilities.of(owner));
}

describe('the abilities of two machines', () => {
  it('are the same for the same versions of the same programs, wherever they are installed', async () => {
    const [here, there] = [machine(), machine()];
    expect(await difference(here.ocr(), there.ocr())).toEqual([]);
    expect(await difference(here.dwg('cat "$1"'), there.dwg('cat "$1"'))).toEqual([]);
    expect(await difference(NO_PROGRAMS, NO_PROGRAMS)).toEqual([]);
    const patient = here.ocr('5.3.0', { pageTimeoutMs: 1 });
    expect(await difference(patient, there.ocr())).toEqual([]);
  });

  it('differ by the version that a program tells', async () => {
    const [here, there] = [machine(), machine()];
    expect(await difference(here.ocr('5.3.0'), there.ocr('5.5.1'))).toEqual([
      'worker: tesseract 5.3.0',
      'owner: tesseract 5.5.1',
    ]);
  });

  it('differ by the content of a program that nobody knows how to ask, and do not run it', async () => {
    const [here, there] = [machine(), machine()];
    const ran = join(temporaryDirectory(), 'ran');
    const found = await difference(here.dwg(`touch '${ran}'`), there.dwg('cat "$1"'));
    expect(found).toEqual([
      expect.stringMatching(/^(worker|owner): dwg2text of sha256 [0-9a-f]{12}$/),
      expect.stringMatching(/^(worker|owner): dwg2text of sha256 [0-9a-f]{12}$/),
    ]);
    expect(existsSync(ran)).toBe(false);
  });

  it('differ by the arguments and the output of a program, and do not show them', async () => {
    const [here, there] = [machine(), machine()];
    const owner = there.dwg('cat "$1"');
    for (const parts of [{ args: ['--key=secret', '{file}'] }, { output: 'mail' as const }]) {
      const found = await difference(here.dwg('cat "$1"', parts), owner);
      expect(found).toEqual([
        expect.stringMatching(/^(worker|owner): \.dwg by dwg2text with the arguments [0-9a-f]{4}$/),
        expect.stringMatching(/^(worker|owner): \.dwg by dwg2text with the arguments [0-9a-f]{4}$/),
      ]);
      expect(found.join(' ')).not.toContain('secret');
    }
  });

  it('show so little of the arguments that no guess can be confirmed, also in the digest of a job', () => {
    const { dwg } = machine();
    const digests = new Set<string>();
    for (let key = 0; key < 2_000; key += 1)
      digests.add(programsDigest(dwg('cat "$1"', { args: [`--key=${key}`] })));
    expect(digests.size).toBeGreaterThan(1_900);
    expect(digests.size).toBeLessThan(2_000);
  });

  it('are of each use of a program if the configuration names one that OCR uses, too', async () => {
    const [here, there] = [machine(), machine()];
    const both = ({ dwg, ocr }: ReturnType<typeof machine>, version: string): Programs => {
      const { commands } = dwg('cat', { name: 'tesseract' });
      return { ...ocr(version), commands };
    };
    expect(await difference(both(here, '5.3.0'), both(there, '5.5.1'))).toEqual([
      'worker: tesseract 5.3.0',
      'owner: tesseract 5.5.1',
    ]);
  });

  it('differ by the options of OCR, and by programs that one of them lacks', async () => {
    const [here, there] = [machine(), machine()];
    expect(await difference(here.ocr('5.3.0', { languages: 'eng' }), there.ocr())).toEqual([
      'owner: OCR in deu+eng with osd, 300 dpi, 500 pages, with pdftoppm',
      'worker: OCR in eng with osd, 300 dpi, 500 pages, with pdftoppm',
    ]);
    expect(await difference(here.ocr('5.3.0', { dpi: 150 }), there.ocr())).toHaveLength(2);
    const { dwg } = there;
    const { '.dwg': command } = dwg('cat "$1"').commands;
    const { program: _, ...missing } = command ?? { name: '', args: [], output: 'text' };
    const lacking = { ...NO_PROGRAMS, commands: { '.dwg': missing } };
    expect(await difference(lacking, dwg('cat "$1"'))).toEqual([
      expect.stringMatching(/^owner: \.dwg by dwg2text with the arguments [0-9a-f]{4}$/),
      expect.stringMatching(/^worker: \.dwg by dwg2text with .* \(not installed\)$/),
      expect.stringMatching(/^owner: dwg2text of sha256 /),
    ]);
  });

  it('are asked for once, as long as the programs are the same', async () => {
    const { install } = machine();
    const calls = join(temporaryDirectory(), 'calls');
    const program = install('catdoc', `echo x >> '${calls}'; echo "Catdoc Version 0.95"`);
    const catdoc: Command = { name: 'catdoc', program, args: ['{file}'], output: 'text' };
    const programs: Programs = { ...NO_PROGRAMS, commands: { '.doc': catdoc, '.dot': catdoc } };
    const abilities = new Abilities(systemClock);
    const found = await Promise.all([abilities.of(programs), abilities.of(programs)]);
    expect(found[0]).toEqual([
      '.doc by catdoc',
      '.dot by catdoc',
      'catdoc 0.95',
      'no OCR (missing)',
    ]);
    install('catdoc', `echo x >> '${calls}'; echo "Catdoc Version 0.96"`);
    expect(await abilities.of({ ...programs })).toContain('catdoc 0.96');
    expect(readFileSync(calls, 'utf8')).toBe('x\nx\n');
  });

  it('are told within 3 s although a program hangs, which is asked again after a minute', async () => {
    const { install, ocr } = machine();
    const directory = temporaryDirectory();
    const calls = join(directory, 'calls');
    const answers = join(directory, 'answers');
    afterwards('test', () => writeFileSync(answers, ''));
    const { ocr: usual } = ocr();
    const programs: Programs = { commands: {}, ...(usual && { ocr: usual }) };
    install(
      'tesseract',
      `echo x >> '${calls}'; until [ -e '${answers}' ] || [ ! -e "$0" ]; do sleep 0.05; done; echo 5.3.0`,
    );
    const callCount = () => (existsSync(calls) ? readFileSync(calls, 'utf8').length / 2 : 0);
    const clock = new FakeClock();
    const abilities = new Abilities(clock);
    const first = abilities.of(programs);
    await until(() => callCount() === 1, 'tesseract is asked');
    await clock.advance(3_000);
    const unknown = `tesseract of a version that ${hostname()} cannot tell`;
    expect(await first).toContain(unknown);
    expect(await abilities.of(programs)).toContain(unknown);
    await clock.advance(17_000);
    // Nothing is left of the one that took too long but the time to ask again.
    await until(() => clock.waiting === 0, 'it is given up');
    await clock.advance(59_000);
    expect(await abilities.of(programs)).toContain(unknown);
    expect(callCount()).toBe(1);
    writeFileSync(answers, '');
    await clock.advance(1_000);
    await until(async () => (await abilities.of(programs)).includes('tesseract 5.3.0'), 'it tells');
    expect(callCount()).toBe(2);
  });
});
