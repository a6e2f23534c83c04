import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

const EXAMPLE = resolve(import.meta.dirname, '../../config.example.json');

describe('the first start', () => {
  it('creates the folder of the example with a welcome document, and confirms it', async () => {
    const directory = temporaryDirectory();
    const example = JSON.parse(readFileSync(EXAMPLE, 'utf8'));
    const config = {
      ...example,
      peer: { ...example.peer, embedded: { dir: './data/peer', port: 0 } },
    };
    const path = join(directory, 'config.json');
    writeFileSync(path, JSON.stringify(config));
    // None of the programs that read scans and old formats are there.
    const env = { PATH: temporaryDirectory() };
    const run = new Running(['run', '-c', path, '--create'], { env });
    await run.says('confirmed inbox/welcome.md');
    expect(run.stdout).toContain(`watching ${join(directory, 'data', 'inbox')}`);
    expect(run.stdout).toMatch(/search it at http:\/\/127\.0\.0\.1:\d+\//);
    const rescan = await peersync(['rescan', 'inbox', '-c', path]);
    expect(rescan.stdout).toMatch(/1 file/);
    expect(rescan.code).toBe(0);
    expect((await peersync(['list', '-c', path, '--folder', 'nowhere'])).code).toBe(2);
    const file = join(directory, 'data', 'inbox', 'welcome.md');
    const why = await peersync(['why', file, '-c', path, '--json']);
    expect(JSON.parse(why.stdout)).toMatchObject({ url: `file://${file}` });
    const search = /search it at (http:\S+\/)/.exec(run.stdout)?.[1] ?? '';
    const page = await (await fetch(`${search}?query=welcome`)).text();
    expect(page).toContain(`<code>${file}</code>`);
    expect(page).not.toContain('example.org');
    expect((await run.kill('SIGTERM')).code).toBe(0);
  });

  it('reports that a file was converted', async () => {
    const directory = temporaryDirectory();
    const path = writeConfig(directory, {
      peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    });
    const file = join(directory, 'inbox', 'utf16.txt');
    writeFileSync(file, Buffer.from('\ufeffGrüße', 'utf16le'));
    expect((await peersync(['once', '-c', path])).code).toBe(0);
    expect((await peersync(['why', file, '-c', path])).stdout).toContain('utf-16le');
  });
});

describe('while a daemon runs', () => {
  it('once reports that the daemon does the work, and a command without -c names the configuration', async () => {
    const directory = temporaryDirectory();
    const first = writeConfig(directory, {
      peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    });
    const path = join(directory, 'notes.json');
    const { state: _, ...usual } = JSON.parse(readFileSync(first, 'utf8'));
    writeFileSync(path, JSON.stringify(usual));
    rmSync(first);
    const nobody = await peersync(['mirror', 'accept', 'prices', '-c', path]);
    expect(nobody.code).toBe(2);
    expect(nobody.stderr).toMatch(/The configuration names no mirrors\.\n.*mirror\/README\.md/);
    writeFileSync(join(directory, 'inbox', 'empty.txt'), '');
    await peersync(['once', '-c', path]);
    chmodSync(join(directory, 'data', 'state'), 0o755);
    const check = await peersync(['check', '-c', path]);
    expect(check.stdout).toMatch(/^note {4}state: .* others can look into it$/m);
    expect(check.stdout).toMatch(/^ok {6}folder inbox: /m);
    const alone = await peersync(['retry', '--all', '-c', path]);
    expect(alone.stdout).toMatch(
      /looked at again\. No daemon runs now: the next `peersync run[^`]*` or `peersync once[^`]*` goes on with that\.\n$/,
    );
    const run = new Running(['run', '-c', path]);
    await run.says('watching');
    await until(
      async () => (await peersync(['status', '-c', path])).stdout.includes('peersync runs'),
      'it answers',
    );
    const once = await peersync(['once', '-c', path]);
    expect(once.code).toBe(1);
    expect(once.stderr).toContain(
      `The running daemon does this already; \`peersync rescan -c ${path}\` has it look now.`,
    );
    expect(once.stderr).not.toContain('state.dir');
    const second = await peersync(['run', '-c', path]);
    expect(second.stderr).toContain(`\`peersync status -c ${path}\` shows its state.`);
    const list = await peersync(['list'], { cwd: directory });
    expect(list.code).toBe(0);
    expect(list.stderr).toContain(`A daemon (pid ${run.child.pid}) runs here on ${path}, and is`);
    expect((await run.kill('SIGTERM')).code).toBe(0);
  });
});

describe('the command line', () => {
  it('expands ~ in paths', async () => {
    const HOME = temporaryDirectory();
    writeConfig(HOME, { peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } } });
    const at = (...args: string[]) =>
      peersync([...args, '--config=~/config.json'], { cwd: temporaryDirectory(), env: { HOME } });
    const why = await at('why', '~/inbox/none.md');
    expect(why).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(join(HOME, 'inbox/none.md')),
    });
    expect(why.stdout).toContain('there is no such file');
    expect((await at('status')).stdout).toContain("`peersync run -c '~/config.json'`");
  });

  it('shows the help without a command, with the exit code of a wrong usage', async () => {
    const { code, stderr, stdout } = await peersync([]);
    expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
    expect(stdout).toMatch(/^peersync <command>[\s\S]*Exit codes: /);
  });

  it('prints the JSON Schema, a completion script, and help with examples', async () => {
    const schema = JSON.parse((await peersync(['schema'])).stdout);
    expect(schema.properties.folders).toBeDefined();
    // There is no SHELL under cron, in a container or on a build machine.
    const completion = async (SHELL: string | undefined, ...shell: string[]) =>
      (await peersync(['completion', ...shell], { env: { SHELL } })).stdout;
    expect(await completion(undefined)).toContain('_peersync_completions');
    expect(await completion('/bin/zsh')).toContain('#compdef peersync');
    expect(await completion('/bin/bash', 'zsh')).toContain('#compdef peersync');
    expect(await peersync(['completion', 'csh'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Give bash, zsh or fish'),
    });
    expect((await peersync(['once', '--help'])).stdout).toMatch(
      /Examples:[\s\S]*once --timeout 1h --json/,
    );
  });
});
