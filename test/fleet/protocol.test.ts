import { join, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_PROGRAMS, type Programs } from '../../src/content/helpers/programs.js';
import { abilitiesOf, differenceOf } from '../../src/fleet/abilities.js';
import {
  EXTRACT_JOB,
  EXTRACT_RESULT,
  OWNER,
  readRecord,
  WORKER,
} from '../../src/fleet/protocol.js';

const JOB = {
  epoch: 'e',
  folder: 'inbox',
  path: 'a/b.pdf',
  wanted: 'text',
  readsTextAsHtml: false,
  programs: 'b'.repeat(64),
  version: {
    size: 1,
    mtimeMs: 1.5,
    ctimeMs: 1.5,
    ino: 1,
    sha256: 'a'.repeat(64),
    encoding: 'document',
  },
};

describe('what owner and workers write to Redis', () => {
  it('never names a file outside of its folder', () => {
    const part = fc.oneof(fc.constantFrom('..', '.', '', '/', '\0', 'a', '...'), fc.string());
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const path = parts.join('/');
        const { data } = EXTRACT_JOB.safeParse({ ...JOB, path });
        if (data === undefined) return;
        expect(join('/srv/inbox', data.path).startsWith(`/srv/inbox${sep}`)).toBe(true);
        expect(data.path).not.toContain('\0');
      }),
    );
    expect(EXTRACT_JOB.safeParse(JOB).success).toBe(true);
  });

  it('is refused, and never an error, if it is of another form', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        for (const schema of [OWNER, WORKER, EXTRACT_RESULT])
          expect(readRecord<unknown>(schema, text)).toBeUndefined();
      }),
    );
  });

  it('names files by the large inodes of network file systems, too', () => {
    const version = { ...JOB.version, ino: 9_007_199_254_740_994 };
    expect(EXTRACT_JOB.safeParse({ ...JOB, version }).success).toBe(true);
  });

  it('is bounded', () => {
    const worker = { id: 'a', host: 'h'.repeat(2_000), pid: 1 };
    expect(readRecord(WORKER, JSON.stringify(worker))).toBeUndefined();
    const report = {
      host: 'h',
      version: '1',
      build: 'b',
      active: 0,
      done: 0,
      failed: 0,
      seenAt: 0,
    };
    const withSlots = (slots: number, pushSlots: number) =>
      readRecord(WORKER, JSON.stringify({ id: 'a', pid: 1, ...report, slots, pushSlots }));
    expect(withSlots(64, 64)).toBeDefined();
    expect(withSlots(65, 0)).toBeUndefined();
    expect(withSlots(1, 65)).toBeUndefined();
    const path = 'a/'.repeat(5_000);
    expect(EXTRACT_JOB.safeParse({ ...JOB, path }).success).toBe(false);
  });
});

describe('abilities', () => {
  const programs = (languages: string, commands: Programs['commands'] = {}): Programs => ({
    commands,
    ocr: {
      tesseract: '/usr/bin/tesseract',
      pdftoppm: '/usr/bin/pdftoppm',
      languages,
      findsRotation: true,
      dpi: 300,
      maxPages: 500,
      pageTimeoutMs: 60_000,
    },
  });

  it('are the same for the same programs, wherever they are installed', () => {
    const here = programs('deu+eng');
    const { ocr } = here;
    if (ocr === undefined) throw new Error('there is no OCR');
    const there: Programs = {
      ...here,
      ocr: { ...ocr, tesseract: '/opt/tesseract' },
      versions: { '/opt/tesseract': '7' },
    };
    expect(differenceOf(abilitiesOf(here), abilitiesOf(there))).toEqual([]);
  });

  it('differ by languages, and by programs that one machine lacks', () => {
    const doc = { name: 'catdoc', args: ['{file}'], output: 'text' } as const;
    const ours = abilitiesOf(programs('eng', { '.doc': doc }));
    const theirs = abilitiesOf(programs('deu', { '.doc': { ...doc, program: '/usr/bin/catdoc' } }));
    expect(differenceOf(ours, theirs)).toEqual([
      'here: .doc by catdoc (not installed)',
      expect.stringMatching(/^here: OCR in eng/),
      'owner: .doc by catdoc',
      expect.stringMatching(/^owner: OCR in deu/),
    ]);
    expect(differenceOf(abilitiesOf(NO_PROGRAMS), abilitiesOf(NO_PROGRAMS))).toEqual([]);
  });
});
