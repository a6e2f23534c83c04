import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLI, peersync } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { peersyncInPath } from '../support/system-tool.js';
import { temporaryDirectory } from '../support/temp.js';

const DIST = resolve(import.meta.dirname, '../../dist');
const COMPLETIONS = join(DIST, 'completions');

function exists(shell: string): boolean {
  return spawnSync(shell, ['--version']).status === 0;
}

/** Returns the completions of the last word in a bash that has read the script. */
function inBash(words: readonly string[], cwd: string): string[] {
  const { stdout, stderr } = spawnSync(
    'bash',
    [
      '-c',
      `peersync() { "$NODE" "$CLI" "$@"; }
       source "$SCRIPT"
       COMP_WORDS=(peersync "$@"); COMP_CWORD=$#
       _peersync_completions
       printf '%s\\n' "\${COMPREPLY[@]}"`,
      'bash',
      ...words,
    ],
    {
      cwd,
      encoding: 'utf8',
      env: {
        ...process.env,
        NODE: process.execPath,
        CLI: CLI,
        SCRIPT: join(COMPLETIONS, 'peersync.bash'),
      },
    },
  );
  expect(stderr).toBe('');
  return stdout.split('\n').filter((line) => line !== '');
}

/** A configuration with two folders and some mirrors, in a directory of its own. */
function place(): string {
  const directory = temporaryDirectory();
  writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    folders: [
      { name: 'inbox' },
      { name: 'my notes', collection: 'notes', url: 'https://files.example.org/notes/' },
    ],
    mirror: { root: join(directory, 'mirror'), tables: [{ table: 'prices' }, { table: 'stock' }] },
  });
  return directory;
}

describe('bash completes', () => {
  it('commands and those below them', () => {
    const cwd = place();
    expect(inBash(['li'], cwd)).toEqual(['list']);
    expect(inBash([''], cwd)).toEqual(
      expect.arrayContaining(['run', 'once', 'status', 'completion']),
    );
    expect(inBash(['table', 'dr'], cwd)).toEqual(['drop']);
  });

  it('options and their values', () => {
    const cwd = place();
    expect(inBash(['verify', '--re'], cwd)).toEqual(['--repair']);
    expect(inBash(['list', '--status', 'q'], cwd)).toEqual(['quarantined']);
  });

  it('names of folders and mirrors in the configuration of the line', () => {
    const cwd = place();
    const elsewhere = temporaryDirectory();
    const named = ['-c', join(cwd, 'config.json')];
    expect(inBash(['rescan', 'in'], cwd)).toEqual(['inbox']);
    expect(inBash(['list', '--folder', ''], cwd)).toEqual(['inbox', 'my\\ notes']);
    expect(inBash(['mirror', ''], cwd)).toEqual(['accept', 'prices', 'stock']);
    expect(inBash(['mirror', 'accept', 'st'], cwd)).toEqual(['stock']);
    expect(inBash([...named, 'rescan', 'in'], elsewhere)).toEqual(['inbox']);
    expect(inBash(['rescan', ''], elsewhere)).toEqual([]);
  }, 240_000);

  it('folders that left the configuration first after forget', async () => {
    const cwd = place();
    writeFileSync(join(cwd, 'inbox', 'a.md'), 'Some words.');
    // The tables that it mirrors are not there.
    expect((await peersync(['once', '--timeout', '60s'], { cwd })).stdout).toContain('1 confirmed');
    const config = JSON.parse(readFileSync(join(cwd, 'config.json'), 'utf8'));
    const folders = config.folders.filter(
      ({ name }: { readonly name: string }) => name !== 'inbox',
    );
    writeFileSync(join(cwd, 'config.json'), JSON.stringify({ ...config, folders }));
    expect(inBash(['forget', ''], cwd)).toEqual(['inbox', 'my\\ notes']);
    expect(inBash(['forget', 'in'], cwd)).toEqual(['inbox']);
  });

  it('names with special characters as quoted text', () => {
    const directory = temporaryDirectory();
    const made = join(directory, 'made');
    const name = 'a $(touch made) `touch made` b';
    const peer = { url: 'embedded', embedded: { dir: './peer', port: 0 } };
    writeConfig(directory, { peer, folders: [{ name, collection: 'c' }] });
    const [offered = ''] = inBash(['rescan', 'a'], directory);
    const { stdout } = spawnSync('bash', ['-c', `printf %s ${offered}`], {
      cwd: directory,
      encoding: 'utf8',
    });
    expect(stdout).toBe(name);
    expect(existsSync(made)).toBe(false);
  });

  it('files, by the completion of bash itself', () => {
    const cwd = place();
    for (const words of [
      ['-c', ''],
      ['why', ''],
      ['push', '--collection', 'c', ''],
    ])
      expect(inBash(words, cwd), words.join(' ')).toEqual([]);
    expect(readFileSync(join(COMPLETIONS, 'peersync.bash'), 'utf8')).toContain('-o default');
  });
});

describe.skipIf(!exists('fish'))('fish completes (needs fish)', () => {
  it('commands, options, names and files', () => {
    const cwd = place();
    const directory = temporaryDirectory();
    const inPath = peersyncInPath(CLI);
    const offered = (line: string) => {
      const commands = `source "$SCRIPT"; complete -C '${line}'`;
      const { stdout } = spawnSync('fish', ['--no-config', '-c', commands], {
        cwd,
        encoding: 'utf8',
        env: {
          ...process.env,
          ...inPath,
          HOME: directory,
          SHELL: '/bin/fish',
          SCRIPT: join(COMPLETIONS, 'peersync.fish'),
        },
      });
      return stdout.split('\n').flatMap((each) => (each === '' ? [] : (each.split('\t')[0] ?? '')));
    };
    expect(offered('peersync veri')).toEqual(['verify']);
    expect(offered('peersync list --st')).toEqual(['--status']);
    expect(offered('peersync rescan ')).toEqual(['inbox', 'my notes']);
    expect(offered('peersync mirror accept ')).toEqual(['prices', 'stock']);
    expect(offered('peersync -c conf')).toEqual(['config.json']);
  }, 240_000);
});

describe('the scripts', () => {
  it('of the build are those that the command prints', async () => {
    const files = { bash: 'peersync.bash', zsh: '_peersync', fish: 'peersync.fish' };
    for (const [shell, name] of Object.entries(files)) {
      const { stdout } = await peersync(['completion', shell]);
      expect(readFileSync(join(COMPLETIONS, name), 'utf8')).toBe(stdout);
      expect(stdout).toContain('peersync --get-yargs-completions');
    }
  });

  it.skipIf(!exists('zsh'))('of zsh are valid (needs zsh)', () => {
    const { status, stderr } = spawnSync('zsh', ['-n', join(COMPLETIONS, '_peersync')], {
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });
});
