// Finishes the build after the compiler: makes the program executable, records the commit, and
// writes the manual page and the completion scripts.
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '../..');
const dist = join(root, 'dist');
const cli = join(dist, 'cli.js');

function git(...args) {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/**
 * Returns the commit of the build. Empty if there is no git, or the source was unpacked into
 * another repository.
 */
function build() {
  try {
    if (realpathSync(git('rev-parse', '--show-toplevel')) !== realpathSync(root)) return {};
    const [commit, date] = git('show', '-s', '--abbrev=7', '--format=%h %cs', 'HEAD').split(' ');
    const modified = git('status', '--porcelain', '--untracked-files=no') !== '';
    return { commit, date, ...(modified ? { modified } : {}) };
  } catch {
    return {};
  }
}

chmodSync(cli, 0o755);
const built = build();
writeFileSync(join(dist, 'build.json'), `${JSON.stringify(built)}\n`);

mkdirSync(join(dist, 'man'), { recursive: true });
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const { manPage } = await import('../../.build/cli/man-page.js');
const { allCommands } = await import('../../.build/commands/commands.js');
const page = await manPage({ commands: await allCommands(), version, date: built.date });
writeFileSync(join(dist, 'man/peersync.1'), page);

mkdirSync(join(dist, 'completions'), { recursive: true });
const scripts = { bash: 'peersync.bash', zsh: '_peersync', fish: 'peersync.fish' };
await Promise.all(
  Object.entries(scripts).map(async ([shell, name]) => {
    const { stdout } = await promisify(execFile)(process.execPath, [cli, 'completion', shell]);
    writeFileSync(join(dist, 'completions', name), stdout);
  }),
);
