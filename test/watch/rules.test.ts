import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import { type Decision, FolderRules, PatternList } from '../../src/watch/rules.js';
import { temporaryDirectory } from '../support/temp.js';
import { folderOf } from './world.js';

function decide(path: string, changes: Partial<FolderConfig> = {}): Decision {
  return new FolderRules(folderOf('/nowhere', changes)).decide(path);
}

/** Rules of a real folder with the given `.peersyncignore` files, by directory. */
async function withFiles(
  files: Record<string, string>,
  changes: Partial<FolderConfig> = {},
): Promise<FolderRules> {
  const root = temporaryDirectory();
  for (const [directory, text] of Object.entries(files)) {
    mkdirSync(join(root, directory), { recursive: true });
    writeFileSync(join(root, directory, '.peersyncignore'), text);
  }
  const rules = new FolderRules(folderOf(root, changes));
  for (const directory of Object.keys(files)) await rules.readIgnoreFiles(join(directory, 'file'));
  return rules;
}

describe('the rules of a folder', () => {
  it('take a file for the collection of its folder, under its URL', () => {
    expect(decide('a b/ü#.txt')).toEqual({
      take: true,
      collection: 'inbox',
      url: 'https://files.example.org/inbox/a%20b/%C3%BC%23.txt',
      rule: 'folder inbox takes it: collection inbox',
    });
  });

  it('name the ignore pattern, also of a directory above', () => {
    expect(decide('x.part')).toEqual({ take: false, rule: 'ignore pattern "*.part" of folder inbox' });
    expect(decide('a/.git/config')).toEqual({ take: false, rule: 'ignore pattern ".git" of folder inbox' });
    expect(decide('.gitignore').take).toBe(true);
    expect(decide('.hidden/.file').take).toBe(true);
  });

  it('pass over what no pattern of include matches', () => {
    const changes = { include: ['*.md', 'docs/'] };
    expect(decide('a/b.md', changes).take).toBe(true);
    expect(decide('docs/x.html', changes).take).toBe(true);
    expect(decide('x.html', changes)).toEqual({
      take: false,
      rule: 'no pattern of include of folder inbox matches',
    });
  });

  it('follow the first rule that matches', () => {
    const changes: Partial<FolderConfig> = {
      rules: [
        { match: 'keep.md', collection: 'kept' },
        { match: 'tmp/', skip: true },
        { match: '*.md', collection: 'notes' },
      ],
    };
    expect(decide('tmp/keep.md', changes)).toMatchObject({ collection: 'kept' });
    expect(decide('tmp/other.md', changes)).toEqual({
      take: false,
      rule: 'rules[1] "tmp/" of folder inbox: skip',
    });
    expect(decide('a.md', changes)).toMatchObject({
      collection: 'notes',
      rule: 'rules[2] "*.md" of folder inbox: collection notes',
    });
    expect(decide('a.txt', changes)).toMatchObject({ collection: 'inbox' });
  });

  it('close a directory that a leading rule skips, and only then', () => {
    const skip = { match: 'tmp/', skip: true } as const;
    const first = new FolderRules(folderOf('/nowhere', { rules: [skip] }));
    expect(first.closed('a/tmp/b')).toBe('rules[0] "tmp/" of folder inbox: skip');
    const second = new FolderRules(
      folderOf('/nowhere', { rules: [{ match: 'keep.md', collection: 'k' }, skip] }),
    );
    expect(second.closed('a/tmp/b')).toBeUndefined();
  });

  it('take names literally that look like syntax', () => {
    const ignore = ['\\#*#', 'exactly\\ ', 'line'];
    for (const name of [
      'a\nb',
      ' leading',
      '#x',
      '!x',
      'back\\slash',
      '[x]',
      '...',
      '-',
      '\u{1f600}',
      'two\nline',
    ]) {
      expect(decide(name, { ignore }), JSON.stringify(name)).toMatchObject({ take: true });
    }
    expect(decide('#auto#', { ignore }).take).toBe(false);
    expect(decide('#auto#', { ignore: ['#*#'] }).take).toBe(false);
    expect(decide('a\nb.part').take).toBe(false);
    expect(decide('a\nb/.git/x').take).toBe(false);
  });

  it('tell upper from lower case, as the file system does', () => {
    expect(decide('X.PART').take).toBe(true);
  });

  it('never push a file of rules', () => {
    expect(decide('a/.peersyncignore')).toEqual({
      take: false,
      rule: '.peersyncignore is a file of rules and is not pushed',
    });
  });
});

describe('.peersyncignore files', () => {
  it('rule their directory and all below it, the deepest first', async () => {
    const rules = await withFiles({
      '': '*.log\n',
      docs: '!keep.log\n/drafts/\n',
      'docs/deep': 'keep.log\n',
    });
    expect(rules.decide('x.log')).toEqual({ take: false, rule: '.peersyncignore in the folder: "*.log"' });
    expect(rules.decide('docs/x.log').take).toBe(false);
    expect(rules.decide('docs/keep.log').take).toBe(true);
    expect(rules.decide('docs/deep/keep.log')).toEqual({
      take: false,
      rule: '.peersyncignore in docs/deep/: "keep.log"',
    });
    expect(rules.decide('docs/drafts/a/b')).toEqual({
      take: false,
      rule: '.peersyncignore in docs/: "/drafts/"',
    });
    expect(rules.decide('docs/a/drafts/b').take).toBe(true);
  });

  it('take back what the configuration ignores, but not below an ignored directory', async () => {
    const rules = await withFiles({ '': '!x.part\n!inner\n' });
    expect(rules.decide('x.part').take).toBe(true);
    expect(rules.decide('.git/inner').take).toBe(false);
  });

  it('pass everything over where they cannot be read', async () => {
    const rules = await withFiles({ a: 'x' });
    const root = temporaryDirectory();
    mkdirSync(join(root, 'a/.peersyncignore'), { recursive: true });
    const unreadable = new FolderRules(folderOf(root));
    await unreadable.readIgnoreFiles('a/y');
    expect(rules.decide('a/y').take).toBe(true);
    expect(unreadable.decide('a/y')).toEqual({
      take: false,
      rule: '.peersyncignore in a/ cannot be read (it is not a regular file)',
    });
    expect(unreadable.decide('y').take).toBe(true);
  });
});

describe('a list of patterns', () => {
  it('says the same of a path however many it was asked about', () => {
    const list = new PatternList(['*.part', '!keep.part']);
    for (let i = 0; i < 25_000; i += 1) {
      expect(list.test(`d${i}/x.part`).ignored).toBe(true);
    }
    expect(list.test('d/keep.part')).toMatchObject({ ignored: false, unignored: true });
    expect(list.test('d/x')).toMatchObject({ ignored: false, unignored: false });
  });

  it('says what git says', () => {
    const directory = fc.constantFrom('p', 'q', '.d', 'a b', '#p', '!p', 'x\ny', '[p]', 'p\\q');
    const file = fc.constantFrom('a', 'b', 'a.txt', '.x', 'a c', '#a', '!a', 'y\nz', '[a]', 'a\\b', '~');
    const path = fc
      .tuple(fc.array(directory, { maxLength: 3 }), file)
      .map(([above, name]) => [...above, name].join('/'));
    const pattern = fc.constantFrom(
      ...['a', '/a', 'p', '/p', 'p/', 'a/', '*.txt', '!a.txt', 'p/b', 'p/q/', '**/b', 'p/**', '*'],
      ...['[ab]', '[!a]', '\\#a', '\\#p', '\\!a', 'a\\\\b', 'a\\ c', 'a*', '!p', '!/p/a'],
    );
    const paths = fc.uniqueArray(path, { minLength: 1, maxLength: 20 });
    const root = temporaryDirectory();
    execFileSync('git', ['init', '-q', root]);
    fc.assert(
      fc.property(paths, fc.array(pattern, { minLength: 1, maxLength: 4 }), (asked, patterns) => {
        writeFileSync(join(root, '.git/info/exclude'), `${patterns.join('\n')}\n`);
        const list = new PatternList(patterns.join('\n'));
        const ignored = gitIgnored(root, asked);
        for (const path of asked) {
          expect(list.test(path).ignored, `${JSON.stringify(path)} ${patterns}`).toBe(ignored.has(path));
        }
      }),
      { numRuns: 60 },
    );
  });
});

/** Those of the paths that git ignores; their directories are made, they themselves count as files. */
function gitIgnored(root: string, paths: readonly string[]): ReadonlySet<string> {
  for (const path of paths) mkdirSync(dirname(join(root, path)), { recursive: true });
  try {
    const output = execFileSync('git', ['-C', root, 'check-ignore', '-z', '--no-index', '--stdin'], {
      input: paths.map((path) => `${path}\0`).join(''),
      encoding: 'utf8',
    });
    return new Set(output.split('\0').filter((path) => path !== ''));
  } catch (error) {
    // Exit code 1: none of them.
    if (typeof error === 'object' && error !== null && 'status' in error && error.status === 1)
      return new Set();
    throw error;
  }
}
