import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import fc from 'fast-check';
import createIgnore from 'ignore';
import { describe, expect, it } from 'vitest';
import type { FolderConfig } from '../../src/config/config.js';
import { FolderRules } from '../../src/watch/rules/folder-rules.js';
import { PatternList } from '../../src/watch/rules/ignore-files.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { folderOf, Inbox } from './inbox.js';

const rulesOf = (changes: Partial<FolderConfig>) => new FolderRules(folderOf('/nowhere', changes));

const TAKEN = 'folder "inbox" takes it: collection "inbox"';
const INCLUDE = { include: ['*.md', 'docs/'] };
const SKIP = { match: 'tmp/', skip: true } as const;
const RULES = {
  rules: [{ match: 'keep.md', collection: 'kept' }, SKIP, { match: '*.md', collection: 'notes' }],
};
const LITERAL = { ignore: ['\\#*#', 'exactly\\ ', 'line'] };
const DEFAULTS = { ignore: ['!.env.example'], ignoreDefaults: true };
const ODD_NAMES = ['a\nb', ' leading', '#x', '!x', 'back\\slash', '[x]', '...', '-', '\u{1f600}'];

describe('the rules of a folder', () => {
  it('take a file for the collection of the folder, with the URL of its path', () => {
    const url = 'https://files.example.org/inbox/a%20b/%C3%BC%23.txt';
    const decision = { take: true, collection: 'inbox', url, rule: TAKEN };
    expect(rulesOf({}).decide('a b/ü#.txt')).toEqual(decision);
  });

  it.each<[string, Partial<FolderConfig>, string]>([
    ['x.part', {}, 'ignore pattern "*.part" of folder "inbox"'],
    ['a\nb.part', {}, 'ignore pattern "*.part" of folder "inbox"'],
    // Patterns are case-sensitive, as the file system is.
    ['X.PART', {}, TAKEN],
    ['a/.git/config', {}, 'ignore pattern ".git" of folder "inbox"'],
    ['.gitignore', {}, TAKEN],
    ['.hidden/.file', {}, TAKEN],
    ['a/.peersyncignore', {}, '.peersyncignore is a file of rules and is not pushed'],
    ['a/b.md', INCLUDE, TAKEN],
    ['docs/x.html', INCLUDE, TAKEN],
    ['x.html', INCLUDE, 'no pattern of include of folder "inbox" matches'],
    ['tmp/keep.md', RULES, 'rules[0] "keep.md" of folder "inbox": collection "kept"'],
    ['tmp/other.md', RULES, 'rules[1] "tmp/" of folder "inbox": skip'],
    ['a.md', RULES, 'rules[2] "*.md" of folder "inbox": collection "notes"'],
    ['a.txt', RULES, TAKEN],
    ['#auto#', LITERAL, 'ignore pattern "\\\\#*#" of folder "inbox"'],
    ['#auto#', { ignore: ['#*#'] }, 'ignore pattern "\\\\#*#" of folder "inbox"'],
    ['deep/.env.local', DEFAULTS, 'ignoreDefaults of folder "inbox": ".env*"'],
    ['.env.example', DEFAULTS, TAKEN],
    ['PROD.ENV', DEFAULTS, 'ignoreDefaults of folder "inbox": "*.env"'],
    ['keys/ID_RSA', DEFAULTS, 'ignoreDefaults of folder "inbox": "id_rsa"'],
    ['.npmrc', DEFAULTS, 'ignoreDefaults of folder "inbox": ".npmrc"'],
    ['.config/gcloud/a.json', DEFAULTS, 'ignoreDefaults of folder "inbox": ".config/gcloud/"'],
    ['.ssh/config', DEFAULTS, 'ignoreDefaults of folder "inbox": ".ssh/"'],
    ['a/node_modules/b/readme.md', DEFAULTS, 'ignoreDefaults of folder "inbox": "node_modules/"'],
    ['keys/id_ed25519', DEFAULTS, 'ignoreDefaults of folder "inbox": "id_ed25519"'],
    ['keys/id_ed25519.pub', DEFAULTS, TAKEN],
    ['.env', {}, TAKEN],
    ...[...ODD_NAMES, 'two\nline'].map((name): [string, object, string] => [name, LITERAL, TAKEN]),
  ])('decide about %j with %j', (path, changes, rule) => {
    const decision = rulesOf(changes).decide(path);
    expect(decision).toMatchObject({ take: rule.includes('collection'), rule });
    if (decision.take) expect(decision.rule).toContain(`collection "${decision.collection}"`);
  });

  it('close a directory only if no rule before the one that skips it may take files', () => {
    expect(rulesOf({ rules: [SKIP] }).closedBy('a/tmp/b')).toBe(
      'rules[0] "tmp/" of folder "inbox": skip',
    );
    const after = { match: 'keep.md', collection: 'k' };
    expect(rulesOf({ rules: [after, SKIP] }).closedBy('a/tmp/b')).toBeUndefined();
  });
});

describe('.peersyncignore files', () => {
  it('apply to their directory and all below it, the deepest first, and override the configuration', async () => {
    const files = {
      '': '*.log\n!x.part\n!inner\n',
      docs: '!keep.log\n/drafts/\n',
      'docs/deep': 'keep.log\n',
    };
    const root = temporaryDirectory();
    for (const [directory, text] of Object.entries(files)) {
      mkdirSync(join(root, directory), { recursive: true });
      writeFileSync(join(root, directory, '.peersyncignore'), text);
    }
    const rules = new FolderRules(folderOf(root));
    await rules.ignoreFiles.readAllAbove('docs/deep/file');
    expect(rules.decide('x.log').rule).toBe('.peersyncignore in the folder: "*.log"');
    expect(rules.decide('docs/deep/keep.log').rule).toBe(
      '.peersyncignore in docs/deep/: "keep.log"',
    );
    expect(rules.decide('docs/drafts/a/b').rule).toBe('.peersyncignore in docs/: "/drafts/"');
    const taken = ['docs/keep.log', 'docs/a/drafts/b', 'x.part'];
    // No pattern takes back a file below an ignored directory.
    const others = ['docs/x.log', '.git/inner'];
    expect([...taken, ...others].filter((path) => rules.decide(path).take)).toEqual(taken);
  });

  it('take effect from the first scan on, and when they are created, changed and removed', async () => {
    const first = { '.peersyncignore': 'no*\n', 'no.txt': 'no' };
    const inbox = new Inbox({
      ...first,
      'd/a.log': 'a',
      'd/e/b.log': 'b',
      'd/c.txt': 'c',
      'x.log': 'x',
    });
    await inbox.start();
    const become = async (...paths: readonly string[]) => {
      await until(() => inbox.paths().join() === paths.join(), `the files are ${paths.join()}`);
      await inbox.idle();
    };
    await become('d/a.log', 'd/c.txt', 'd/e/b.log', 'x.log');
    inbox.write('d/.peersyncignore', '*.log\n');
    await become('d/c.txt', 'x.log');
    inbox.write('d/.peersyncignore', 'a.log\n*.txt\n');
    await become('d/e/b.log', 'x.log');
    inbox.remove('d/.peersyncignore');
    await become('d/a.log', 'd/c.txt', 'd/e/b.log', 'x.log');
  });

  it('that cannot be read keep the records of their directory, without scans, until they can', async () => {
    const inbox = await new Inbox(['d/a.txt']).start();
    for (const path of ['d/.peersyncignore/is-a-directory', 'd/b.txt', 'c.txt']) inbox.write(path);
    await inbox.start({ hints: false, policy: { rootCheckMs: 20, degradedRescanMs: 20 } });
    expect(inbox.paths()).toEqual(['c.txt', 'd/a.txt']);
    expect(inbox.watcher.problems()).toMatchObject([{ failure: { code: 'RULES_UNREADABLE' } }]);
    const { lastScan } = inbox.folder;
    inbox.remove('d/.peersyncignore');
    await inbox.becomes({ 'd/b.txt': 'pending' });
    expect(inbox.watcher.problems()).toEqual([]);
    expect(inbox.folder.lastScan).toBe(lastScan);
    const rules = new FolderRules(folderOf(inbox.root));
    inbox.write('d/.peersyncignore/is-a-directory');
    await rules.ignoreFiles.readAllAbove('d/y');
    const rule = '.peersyncignore in d/ cannot be read (it is not a regular file)';
    expect(rules.decide('d/y')).toEqual({ take: false, rule });
    expect(rules.decide('y').take).toBe(true);
  });

  it('that are read twice at once end as they are on disk', async () => {
    const root = temporaryDirectory();
    const file = join(root, '.peersyncignore');
    for (let turns = 0; turns < 100; turns += 1) {
      // Reading takes longer if it takes several pieces.
      writeFileSync(file, '# older\n'.repeat(100_000));
      const rules = new FolderRules(folderOf(root));
      const older = rules.ignoreFiles.read('');
      for (let i = 0; i < turns % 10; i += 1) await nextTurn();
      writeFileSync(`${file}.new`, 'secret\n');
      renameSync(`${file}.new`, file);
      await Promise.all([older, rules.ignoreFiles.read('')]);
      expect(rules.decide('secret').take).toBe(false);
    }
  });

  it.each<[string, (inbox: Inbox) => void]>([
    ['is removed', (inbox) => inbox.remove('d')],
    ['is excluded', (inbox) => inbox.write('.peersyncignore', 'd/\n')],
  ])('that cannot be read are no problem any more when their directory %s', async (_, ends) => {
    const inbox = await new Inbox(['d/.peersyncignore/is-a-directory']).start();
    expect(inbox.watcher.problems()).toMatchObject([{ failure: { code: 'RULES_UNREADABLE' } }]);
    ends(inbox);
    await until(() => inbox.watcher.problems().length === 0, 'there is no problem');
  });

  it('that exclude a directory keep the records of its removed files', async () => {
    const inbox = await new Inbox(['d/x.txt', 'd/y.txt']).start();
    inbox.remove('d/x.txt');
    await inbox.becomes({ 'd/x.txt': 'gone' });
    inbox.write('.peersyncignore', 'd/\n');
    await inbox.becomes({ 'd/y.txt': undefined });
    let isIdle = false;
    void inbox.idle().then(() => {
      isIdle = true;
    });
    await until(() => isIdle, 'nothing is left to do');
  });
});

describe('a list of patterns', () => {
  it('gives the same verdict however many paths it has tested', () => {
    const list = new PatternList(['*.part', '!keep.part']);
    for (let i = 0; i < 25_000; i += 1) expect(list.test(`d${i}/x.part`).ignored).toBe(true);
    expect(list.test('d/keep.part')).toMatchObject({ ignored: false, unignored: true });
    expect(list.test('d/x')).toMatchObject({ ignored: false, unignored: false });
  });

  it('decides every path as the package does', () => {
    const part = fc.constantFrom(
      'a',
      'b.txt',
      'B.TXT',
      '.env',
      '#x#',
      'x~',
      '[y]',
      'y',
      ' z',
      '\\',
    );
    const name = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''));
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('/'));
    const wild = fc.constantFrom('*', '?', '**', '/', '[a-y]', '[!b]', '\\[', '\\#', '\\*', '\\ ');
    const piece = fc.oneof(part, wild);
    const pattern = fc
      .tuple(fc.constantFrom('', '!', '/', '# '), fc.array(piece, { maxLength: 4 }))
      .map(([before, pieces]) => before + pieces.join(''));
    const patterns = fc.array(pattern, { maxLength: 4 });
    fc.assert(
      fc.property(patterns, fc.boolean(), path, (given, ignoreCase, asked) => {
        const text = given.join('\n');
        const theirs = createIgnore({ ignoreCase }).add(text).test(asked);
        const { ignored, unignored } = new PatternList(text, ignoreCase).test(asked);
        expect({ ignored, unignored }).toEqual({
          ignored: theirs.ignored,
          unignored: theirs.unignored,
        });
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['\t', '\t'],
    ['\u3000', '\u3000/secret'],
    ['\r\r', '\r'],
    ['a\n\n \n\t', '\t'],
  ])('of white space %j keeps out %j, as the package does', (patterns, path) => {
    expect(createIgnore().add(patterns).test(path).ignored).toBe(true);
    expect(new PatternList(patterns).test(path).ignored).toBe(true);
  });

  it('with a comment of 40,000 characters keeps out what its patterns name', () => {
    const patterns = `# ${'a'.repeat(40_000)}\nsecret.txt`;
    expect(new PatternList(patterns).test('secret.txt').ignored).toBe(true);
  });

  it('agrees with git', () => {
    const directory = fc.constantFrom('p', 'q', '.d', 'a b', '#p', '!p', 'x\ny', '[p]', 'p\\q');
    const file = fc.constantFrom(
      'a',
      'b',
      'a.txt',
      '.x',
      'a c',
      '#a',
      '!a',
      'y\nz',
      '[a]',
      'a\\b',
      '~',
    );
    const path = fc
      .tuple(fc.array(directory, { maxLength: 3 }), file)
      .map(([above, name]) => [...above, name].join('/'));
    const pattern = fc.constantFrom(
      'a',
      '/a',
      'p',
      '/p',
      'p/',
      'a/',
      '*.txt',
      '!a.txt',
      'p/b',
      'p/q/',
      '**/b',
      'p/**',
      '*',
      '[ab]',
      '[!a]',
      '\\#a',
      '\\#p',
      '\\!a',
      'a\\\\b',
      'a\\ c',
      'a*',
      '!p',
      '!/p/a',
    );
    const paths = fc.uniqueArray(path, { minLength: 1, maxLength: 20 });
    const root = temporaryDirectory();
    execFileSync('git', ['init', '-q', root]);
    fc.assert(
      fc.property(paths, fc.array(pattern, { minLength: 1, maxLength: 4 }), (asked, patterns) => {
        writeFileSync(join(root, '.git/info/exclude'), `${patterns.join('\n')}\n`);
        const list = new PatternList(patterns.join('\n'));
        const ignored = gitIgnored(root, asked);
        for (const each of asked)
          expect(list.test(each).ignored, `${JSON.stringify(each)} ${patterns}`).toBe(
            ignored.has(each),
          );
      }),
      { numRuns: 60 },
    );
  });
});

/**
 * Those of the paths that git ignores; their directories are made, they themselves count as files.
 */
function gitIgnored(root: string, paths: readonly string[]): ReadonlySet<string> {
  for (const path of paths) mkdirSync(dirname(join(root, path)), { recursive: true });
  try {
    const output = execFileSync(
      'git',
      ['-C', root, 'check-ignore', '-z', '--no-index', '--stdin'],
      {
        input: paths.map((path) => `${path}\0`).join(''),
        encoding: 'utf8',
      },
    );
    return new Set(output.split('\0').filter((path) => path !== ''));
  } catch (error) {
    // Exit code 1: none of them.
    if (error instanceof Error && 'status' in error && error.status === 1) return new Set();
    throw error;
  }
}
