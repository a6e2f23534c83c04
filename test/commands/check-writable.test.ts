import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkWritable } from '../../src/commands/check.js';
import { temporaryDirectory } from '../support/temp.js';

const checked = (path: string, free?: (asked: string) => Promise<number>) =>
  checkWritable('state', path, 'state.dir', free);

describe('check, of a directory that is written to', () => {
  it('is content with one that is there, and with one that can be made', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'a', 'b');
    expect(await checked(path)).toEqual({
      check: 'state',
      ok: true,
      message: `${path} will be made when it is needed`,
    });
    mkdirSync(path, { recursive: true, mode: 0o700 });
    expect(await checked(path)).toEqual({
      check: 'state',
      ok: true,
      message: `${path} can be written`,
    });
  });

  it('names what is in the way, and the key to mend', async () => {
    const path = join(temporaryDirectory(), 'state');
    writeFileSync(path, 'a file', { mode: 0o600 });
    const finding = await checked(path);
    expect(finding).toMatchObject({ check: 'state', ok: false });
    expect(finding.message).toContain(`${path} cannot be written: `);
    expect(finding.hint).toContain('`state.dir`');
  });

  it('warns of a state that others can read or write', async () => {
    const path = temporaryDirectory();
    chmodSync(path, 0o700);
    expect((await checked(path)).hint).toBeUndefined();
    for (const mode of [0o704, 0o740, 0o702, 0o755]) {
      chmodSync(path, mode);
      expect(await checked(path)).toMatchObject({
        ok: true,
        message: `${path} can be written, and others can look into it`,
        hint: `Close it to them: chmod 700 ${path}`,
      });
    }
    expect((await checkWritable('mirror root', path, 'mirror.root')).hint).toBeUndefined();
  });

  it('asks for space where the disk is full', async () => {
    const directory = temporaryDirectory();
    const path = join(directory, 'state');
    const finding = await checked(path, async (asked) => (asked === directory ? 0 : 1));
    expect(finding).toMatchObject({ ok: false, message: `no space is left on the disk of ${path}` });
    expect(finding.hint).toContain('Free some space');
  });
});
