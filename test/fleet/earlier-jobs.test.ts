import { describe, expect, it } from 'vitest';
import { EarlierJobs } from '../../src/fleet/earlier-jobs.js';
import type { ExtractJob, ExtractResult } from '../../src/fleet/protocol.js';

const JOB: ExtractJob = {
  epoch: 'the run before',
  folder: 'inbox',
  path: 'a.pdf',
  version: {
    size: 7,
    mtimeMs: 1,
    ctimeMs: 2,
    ino: 3,
    sha256: 'a'.repeat(64),
    encoding: 'document',
  },
  wanted: 'text',
  readsTextAsHtml: false,
  programs: 'b'.repeat(64),
  abilities: 'e'.repeat(64),
};
const refused: ExtractResult = {
  kind: 'read',
  result: {
    kind: 'refused',
    failure: { code: 'DOCUMENT_ENCRYPTED', message: 'It has a password.', hint: 'Remove it.' },
  },
};
const wordless: ExtractResult = { kind: 'read', result: { kind: 'wordless', reader: 'pdf' } };
const counted: ExtractResult = { kind: 'read', result: { kind: 'extracted', words: 7 } };

/** The jobs of an earlier run, if Redis has one that reads `JOB`. */
async function earlierJobs(job: unknown = JOB, result?: ExtractResult): Promise<EarlierJobs> {
  const jobs = new EarlierJobs();
  const earlier = async () => [{ id: 'before-1', data: job, result }];
  await jobs.find({ earlier }, [JOB.epoch]);
  return jobs;
}

describe('the jobs of earlier runs of the owner', () => {
  it('are taken once, whether a worker does them or has read the document', async () => {
    for (const result of [undefined, counted]) {
      const jobs = await earlierJobs(JOB, result);
      expect(jobs.take(JOB)).toBe('before-1');
      expect(jobs.take(JOB)).toBeUndefined();
    }
  });

  it('are not taken if the document was refused or has no words: an earlier run may know that', async () => {
    for (const result of [refused, wordless])
      expect((await earlierJobs(JOB, result)).take(JOB)).toBeUndefined();
  });

  it('are not taken for another version of the file, or if another result is wanted', async () => {
    const { version } = JOB;
    const others: readonly Partial<ExtractJob>[] = [
      { version: { ...version, sha256: 'c'.repeat(64) } },
      { version: { ...version, size: 8 } },
      { version: { ...version, mtimeMs: 9 } },
      { version: { ...version, ctimeMs: 9 } },
      { version: { ...version, ino: 9 } },
      { version: { ...version, encoding: 'utf-8' } },
      { path: 'b.pdf' },
      { folder: 'other' },
      { wanted: 'words' },
      { readsTextAsHtml: true },
    ];
    const jobs = await earlierJobs();
    for (const other of others) expect(jobs.take({ ...JOB, ...other })).toBeUndefined();
  });

  it('are not taken if other programs read documents now', async () => {
    expect((await earlierJobs()).take({ ...JOB, programs: 'd'.repeat(64) })).toBeUndefined();
  });

  it('are no records that another program has written', async () => {
    const jobs = await earlierJobs({ ...JOB, path: '../a.pdf' });
    expect(jobs.take({ ...JOB, path: '../a.pdf' })).toBeUndefined();
  });
});
