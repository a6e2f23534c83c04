import { spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { asErrorLines } from '../../src/daemon/log.js';
import { compiledProgram } from '../support/program.js';
import { temporaryDirectory } from '../support/temp.js';

let program = '';
beforeAll(async () => {
  program = await compiledProgram('test/daemon/talking-program.ts');
});

/** What a program that logs leaves in a file, where its environment is made of that file's own device and inode. */
async function said(envOf: (stat: { dev: number; ino: number }) => NodeJS.ProcessEnv): Promise<string> {
  const file = join(temporaryDirectory(), 'log');
  const fd = openSync(file, 'w');
  const env = { ...process.env, ...envOf(fstatSync(fd)) };
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', fd, 'inherit'] });
  closeSync(fd);
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code).toBe(0);
  return readFileSync(file, 'utf8');
}

describe('the log', () => {
  it('is for a journal one line an event with its priority, whatever the text holds', async () => {
    const text = await said(({ dev, ino }) => ({ JOURNAL_STREAM: `${dev}:${ino}` }));
    const lines = text.trimEnd().split('\n');
    expect(lines.slice(0, 5)).toEqual([
      '<7>a detail',
      '<6>confirmed inbox/größe.txt (1s after its push)',
      '<4>two | lines,\\u001b[31m red and\\u0007 a bell',
      '<3>broken',
      expect.stringMatching(/^<3>the thread broke down: no \| Error: no \| at /),
    ]);
    expect(lines).toHaveLength(5);
  });

  it('is JSON where the journal is another file', async () => {
    const text = await said(({ dev, ino }) => ({ JOURNAL_STREAM: `${dev}:${ino + 1}` }));
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ level }) => level)).toEqual([20, 30, 40, 50, 50]);
    expect(lines[1]).toMatchObject({
      event: 'confirmed',
      msg: 'confirmed inbox/größe.txt (1s after its push)',
    });
  });

  it('takes the form that is asked for', async () => {
    const { JOURNAL_STREAM: _, ...none } = process.env;
    expect(await said(() => ({ ...none, PEERSYNC_LOG: 'journal' }))).toMatch(/^<7>a detail\n<6>confirmed/);
    const pretty = await said(({ dev, ino }) => ({
      JOURNAL_STREAM: `${dev}:${ino}`,
      PEERSYNC_LOG: 'pretty',
      NO_COLOR: '1',
    }));
    expect(pretty).toMatch(/^\[\d\d:\d\d:\d\d\] DEBUG: a detail\n/);
    expect(pretty).toContain('] WARN: two | lines,\\u001b[31m red and\\u0007 a bell\n');
    expect(pretty.trimEnd().split('\n')).toHaveLength(5);
  });
});

describe('what a command complains of in a journal', () => {
  it('has the priority of errors in each line', () => {
    expect(asErrorLines('peersync: There is no file.\n  Name one.\n\n')).toBe(
      '<3>peersync: There is no file.\n<3>  Name one.\n',
    );
  });

  it('is written so when the standard error is the journal', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'stderr');
    writeFileSync(file, '');
    const fd = openSync(file, 'w');
    const { dev, ino } = fstatSync(fd);
    const child = spawn(process.execPath, [program, 'complain'], {
      env: { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` },
      stdio: ['ignore', 'ignore', fd],
    });
    closeSync(fd);
    await new Promise((resolve) => child.on('close', resolve));
    expect(readFileSync(file, 'utf8')).toBe('<3>peersync: It did not go well.\n<3>  Do it again.\n');
  });
});
