import { join, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
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
  abilities: 'c'.repeat(64),
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
