import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/cli/command.js';
import { manPage } from '../../src/cli/man-page.js';
import { allCommands } from '../../src/commands/commands.js';
import { versionText } from '../../src/lib/process.js';
import { temporaryDirectory } from '../support/temp.js';

const COMMANDS = await allCommands();
const page = await manPage({ commands: COMMANDS, version: '1.2.3', date: '2026-01-02' });

function exists(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

function onDisk(): string {
  const path = join(temporaryDirectory(), 'peersync.1');
  writeFileSync(path, page);
  return path;
}

/** All commands, those below others too, each with the words above it. */
function flat(commands: readonly Command[], above = ''): Command[] {
  return commands.flatMap((each) => [
    { ...each, usage: above + each.usage },
    ...flat(each.commands ?? [], `${above}${each.usage.split(' ')[0]} `),
  ]);
}

describe('the manual page', () => {
  it.skipIf(!exists('groff'))('is formatted by groff without a warning', () => {
    const { stderr, status } = spawnSync('groff', ['-man', '-ww', '-Tutf8', '-z', onDisk()], {
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(status).toBe(0);
  });

  it.skipIf(!exists('mandoc'))('has nothing that mandoc would warn of', () => {
    const { stdout } = spawnSync('mandoc', ['-T', 'lint', '-W', 'style', onDisk()], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('');
  });

  it.skipIf(!exists('groff'))(
    'reads as it is meant: options with dashes, examples as they are typed',
    () => {
      const shown = execFileSync('groff', ['-man', '-Tutf8', '-P-cbou', '-rLL=110n', onDisk()], {
        encoding: 'utf8',
      });
      expect(shown).toContain('peersync run --log-level debug');
      expect(shown).toMatch(/-c, --config +The configuration file\n/);
      for (const short of ['-h, --help', '-V, --version']) expect(shown).toContain(short);
      expect(shown).toMatch(/--timeout +Give up after this long/);
      expect(shown).toContain('column=\\@');
      expect(shown).toMatch(/EXIT STATUS[\s\S]*4\s+peer unreachable/);
      expect(shown).toContain('peersync 1.2.3');
    },
  );

  it('has examples that the help breaks between words alone, also where a terminal is 80 columns wide', () => {
    const lines = flat(COMMANDS).flatMap(({ examples = [] }) => examples.map(([line]) => line));
    expect(lines.length).toBeGreaterThan(20);
    // Half of the width is theirs.
    for (const line of lines)
      for (const word of line.split(' ')) expect(word.length, line).toBeLessThan(40);
  });

  it('holds every command, option, argument and example that is defined', () => {
    const escaped = (words: string) => words.replaceAll('-', '\\-').replaceAll('"', '\\(dq');
    expect(flat(COMMANDS).map(({ usage }) => usage)).toContain('table delete-rows <table> [pk..]');
    for (const { usage, options = {}, positionals = {}, examples = [] } of flat(COMMANDS)) {
      const begin = page.indexOf(`.SS "${escaped(`peersync ${usage}`)}"`);
      expect(begin, usage).toBeGreaterThan(0);
      const section = page.slice(begin, page.indexOf('\n.S', begin + 1));
      for (const name of Object.keys(options)) expect(section).toContain(escaped(`--${name}`));
      for (const name of Object.keys(positionals))
        expect(section).toMatch(new RegExp(`^ +${name} `, 'm'));
      for (const [, what] of examples) expect(section).toContain(escaped(what.slice(0, 12)));
    }
  });
});

describe('the version', () => {
  it('names commit, date and Node, and whether the source was changed since', () => {
    const node = process.versions.node;
    expect(versionText({ commit: 'a8e24bf', date: '2026-11-21' })).toMatch(
      new RegExp(`^peersync \\d+\\.\\d+\\.\\d+ \\(a8e24bf, 2026-11-21, Node ${node}\\)$`),
    );
    expect(versionText({ commit: 'a8e24bf', date: '2026-11-21', modified: true })).toContain(
      '(a8e24bf modified, 2026-11-21, ',
    );
    expect(versionText({})).toMatch(new RegExp(`\\(Node ${node}\\)$`));
  });
});
