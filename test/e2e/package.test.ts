import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { PAGES } from '../../src/lib/documentation.js';
import { pdf } from '../content/documents.js';
import { afterwards } from '../support/afterwards.js';
import { writeConfig } from '../support/config.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { linksOf } from '../tools/links.js';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

const ours = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string;
};

interface Component {
  readonly 'bom-ref': string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

interface Lock {
  packages: Record<
    string,
    { version: string; dev?: boolean; optional?: boolean; devOptional?: boolean }
  >;
}

/** The source alone, as on a machine where nothing was built yet, and without git. */
function copyOfSource(): string {
  const copy = temporaryDirectory('file');
  const listed = ['ls-files', '-co', '--exclude-standard', '-z'];
  for (const file of execFileSync('git', listed, { cwd: REPOSITORY, encoding: 'utf8' }).split(
    '\0',
  )) {
    const isNeeded =
      file !== '' &&
      file !== 'node_modules' &&
      (!file.startsWith('test/') || /^test\/tools\/|README\.md$/.test(file));
    if (!isNeeded || !existsSync(join(REPOSITORY, file))) continue;
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(REPOSITORY, file), join(copy, file));
  }
  symlinkSync(join(REPOSITORY, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)))
    .sort();
}

describe('the package', () => {
  let source: string;
  let tarball: string;
  /** The list of files in the package. */
  let content: string;
  let files: Set<string>;

  beforeAll(async () => {
    source = copyOfSource();
    const out = temporaryDirectory('file');
    await run('npm', ['pack', '--silent', '--pack-destination', out], { cwd: source });
    tarball = join(out, `peersync-${ours.version}.tgz`);
    execFileSync('tar', ['-xzf', tarball, '-C', out]);
    content = join(out, 'package');
    files = new Set(filesBelow(content));
  }, 300_000);

  const read = (file: string) => readFileSync(join(content, file), 'utf8');

  it('contains the needed files and nothing else', () => {
    const places = [...files].map((file) => {
      const parts = file.split('/');
      const depth = parts[0] === 'dist' ? 2 : 1;
      return parts.length > depth ? `${parts.slice(0, depth).join('/')}/` : file;
    });
    const dist =
      'build.json chunks/ cli.js cmaps/ completions/ document-process.js embedded/ file-thread.js index.d.ts index.js lib/ licenses.txt man/ page/ peer/';
    expect(new Set(places)).toEqual(
      new Set([
        'LICENSE',
        'README.md',
        'config.example.json',
        'package.json',
        'src/',
        'systemd/',
        'test/',
        ...dist.split(' ').map((name) => `dist/${name}`),
      ]),
    );
    expect([...files].filter((file) => /\.map$|(?<!\.d)\.ts$/.test(file))).toEqual([]);
    for (const file of files)
      if (/\.(js|d\.ts)$/.test(file)) expect(read(file), file).not.toContain('sourceMappingURL');
    // The template of the pages that stand alone is filled by the build.
    const assets = readdirSync(join(source, 'src/page/browser')).filter(
      (name) => /\.(html|css|svg)$/.test(name) && name !== 'standalone.html',
    );
    expect([...files]).toEqual(
      expect.arrayContaining([
        'dist/man/peersync.1',
        ...['peersync.bash', '_peersync', 'peersync.fish'].map(
          (name) => `dist/completions/${name}`,
        ),
        ...readdirSync(join(source, 'systemd')).map((name) => `systemd/${name}`),
        ...assets.map((name) => `dist/page/browser/${name}`),
      ]),
    );
  });

  it('contains every page that its pages link to', () => {
    const links = [...files].filter((file) => file.endsWith('README.md')).flatMap(linksOf(content));
    expect(links.length).toBeGreaterThan(15);
    const isPicture = ({ target }: { target: string }) => target.endsWith('.png');
    for (const { page, target } of links.filter((link) => !isPicture(link)))
      expect(existsSync(join(content, target)), `${page} links to ${target}`).toBe(true);
  });

  it('contains every page that messages and the manual page name, at the path that they name', () => {
    expect([...files]).toEqual(expect.arrayContaining([...PAGES]));
    const manual = read('dist/man/peersync.1').replaceAll('\\-', '-');
    const named = [...manual.matchAll(/\$\(npm root -g\)\/peersync\/(\S+\.md)/g)].map(
      ([, page]) => page,
    );
    expect(named).toEqual(['README.md', 'src/config/README.md']);
    expect(manual.match(/\S+README\.md/g)).toHaveLength(named.length);
    const config = writeConfig(temporaryDirectory(), { peer: { url: 'http://127.0.0.1:1' } });
    const cli = join(content, 'dist/cli.js');
    const options = { encoding: 'utf8', env: { ...process.env, NODE_PATH: '' } } as const;
    const { stdout } = spawnSync(process.execPath, [cli, 'mirror', '-c', config], options);
    const [, page = ''] = /stands in (.*)\.\n/.exec(stdout) ?? [];
    expect(page).toBe(join(content, 'src/mirror/README.md'));
  });

  it('is a library whose types need only those of Node', () => {
    const user = temporaryDirectory();
    mkdirSync(join(user, 'node_modules/@types'), { recursive: true });
    symlinkSync(content, join(user, 'node_modules/peersync'));
    symlinkSync(
      join(REPOSITORY, 'node_modules/@types/node'),
      join(user, 'node_modules/@types/node'),
    );
    writeFileSync(
      join(user, 'user.mts'),
      "import { PeerClient } from 'peersync'; export const docs = PeerClient.prototype.peerdoc;",
    );
    const tsc = join(REPOSITORY, 'node_modules/typescript/bin/tsc');
    const options = ['--strict', '--noEmit', '--module', 'nodenext', '--types', 'node', 'user.mts'];
    const { stdout, status } = spawnSync(process.execPath, [tsc, ...options], {
      cwd: user,
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, '']);
  }, 60_000);

  it('shows the commit of the build and whether the source was modified; without git it shows none', async () => {
    expect(JSON.parse(read('dist/build.json'))).toEqual({});
    const date = {
      GIT_COMMITTER_DATE: '2026-02-03T23:00:00Z',
      GIT_AUTHOR_DATE: '2025-01-01T00:00:00Z',
    };
    const git = (...args: string[]) =>
      execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', ...args], {
        cwd: source,
        encoding: 'utf8',
        env: { ...process.env, ...date },
      }).trim();
    const built = async () => {
      await run(process.execPath, ['test/tools/finish-build.mjs'], { cwd: source });
      return JSON.parse(readFileSync(join(source, 'dist/build.json'), 'utf8')) as unknown;
    };
    git('init', '-q');
    git('add', 'src', 'package.json', 'README.md');
    git('commit', '-q', '-m', 'All of it');
    const commit = git('rev-parse', '--short=7', 'HEAD');
    expect(await built()).toEqual({ commit, date: '2026-02-03' });
    writeFileSync(join(source, 'README.md'), 'changed');
    expect(await built()).toEqual({ commit, date: '2026-02-03', modified: true });
    const { stdout } = await run(process.execPath, ['dist/cli.js', '--version'], { cwd: source });
    expect(stdout).toBe(
      `peersync ${ours.version} (${commit} modified, 2026-02-03, Node ${process.versions.node})\n`,
    );
  }, 180_000);

  it('runs where it is installed: from the first configuration to a confirmed file', async (context) => {
    const machine = temporaryDirectory();
    // A blank in the path is no reason not to work.
    const prefix = join(machine, 'pre fix');
    mkdirSync(prefix);
    const quietly = ['--prefer-offline', '--no-audit', '--no-fund'];
    const install = ['install', '-g', '--prefix', prefix, ...quietly, tarball];
    const installed = spawnSync('npm', install, { cwd: machine, encoding: 'utf8' });
    const noNetwork = /ENOTCACHED|ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH/;
    if (installed.status !== 0 && noNetwork.test(installed.stderr))
      context.skip('the dependencies cannot be fetched here');
    expect(installed.status, installed.stderr).toBe(0);

    const home = join(machine, 'home');
    mkdirSync(join(home, 'data', 'inbox'), { recursive: true });
    const env = {
      PATH: `${join(prefix, 'bin')}:${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: home,
    };
    const peersync = (...args: string[]) => run('peersync', args, { cwd: home, env });

    expect((await peersync('--version')).stdout).toMatch(/^peersync \d/);
    expect((await peersync('init')).stdout).toContain('config.json');
    const path = join(home, 'config.json');
    const config = JSON.parse(readFileSync(path, 'utf8'));
    config.peer.embedded = { dir: './data/peer', port: 0 };
    config.status = { listen: '127.0.0.1:0' };
    writeFileSync(path, JSON.stringify(config));
    expect((await peersync('check')).stdout).toContain('ok      folder inbox');

    const daemon = spawn('peersync', ['run'], { cwd: home, env });
    afterwards('test', () => void daemon.kill('SIGKILL'));
    let log = '';
    for (const stream of [daemon.stdout, daemon.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        log += text;
      });
    const page = /status page at (http:\/\/127\.0\.0\.1:\d+\/)/;
    await until(() => page.test(log), `the page is there: ${log}`);
    writeFileSync(join(home, 'data', 'inbox', 'first.md'), 'The first words here.');
    await until(() => log.includes('confirmed inbox/first.md'), `it is confirmed: ${log}`);
    expect((await peersync('why', 'data/inbox/first.md')).stdout).toContain(
      'confirmed: the peer showed',
    );
    // The PDF reader would use a native package if there were one.
    writeFileSync(join(home, 'data', 'inbox', 'second.pdf'), pdf('Words in a PDF'));
    await until(() => log.includes('confirmed inbox/second.pdf'), `the PDF is confirmed: ${log}`);

    const address = page.exec(log)?.[1] ?? '';
    const html = await (await fetch(address)).text();
    const wanted = [...html.matchAll(/(?:src|href)="([^"#:]+)"/g)].map(([, name = '']) => name);
    expect(wanted.length).toBeGreaterThan(1);
    for (const name of wanted) expect((await fetch(new URL(name, address))).status, name).toBe(200);

    const ended = new Promise((done) => daemon.on('close', done));
    daemon.kill('SIGTERM');
    expect(await ended, log).toBe(0);

    const lib = join(prefix, 'lib');
    expect(existsSync(join(prefix, 'share/man/man1/peersync.1'))).toBe(true);
    writeFileSync(
      join(lib, 'user.mjs'),
      "import { PeerClient } from 'peersync'; console.log(typeof PeerClient.prototype.peerdoc);",
    );
    expect((await run(process.execPath, ['user.mjs'], { cwd: lib })).stdout).toBe('function\n');
  }, 300_000);
});

describe('the list of dependencies', () => {
  it('is CycloneDX, even before the first build, and names every package that is installed with peersync', async () => {
    const source = copyOfSource();
    // A build removes the files of earlier builds.
    const stale = ['.build/page/browser/old.js', 'dist/old.js'].map((file) => join(source, file));
    for (const file of stale) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, '');
    }
    const { stdout } = await run('npm', ['run', '--silent', 'sbom'], {
      cwd: source,
      maxBuffer: 64 * 1024 * 1024,
    });
    expect(filesBelow(join(source, 'dist')).filter((file) => file.endsWith('old.js'))).toEqual([]);
    const list = JSON.parse(stdout);
    expect(list).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: expect.stringMatching(/^1\.\d+$/),
      serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f-]{36}$/),
      version: 1,
      metadata: {
        component: {
          name: 'peersync',
          version: ours.version,
          purl: `pkg:npm/peersync@${ours.version}`,
        },
      },
    });
    const references = list.components.map((component: Component) => component['bom-ref']);
    expect(new Set(references).size).toBe(references.length);
    for (const { type, purl } of list.components as Component[])
      expect([type, purl]).toEqual(['library', expect.stringMatching(/^pkg:npm\//)]);
    const known = new Set([...references, list.metadata.component['bom-ref']]);
    for (const { dependsOn = [], ref } of list.dependencies)
      for (const each of [ref, ...dependsOn]) expect(known, each).toContain(each);

    const lock = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8')) as Lock;
    const installed = Object.entries(lock.packages)
      .filter(([path, entry]) => path !== '' && !entry.dev && !entry.optional && !entry.devOptional)
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`);
    const bundled =
      readFileSync(join(source, 'dist/licenses.txt'), 'utf8').match(/^\S+@\d\S*$/gm) ?? [];
    expect(installed.length).toBe(1);
    expect(bundled.length).toBeGreaterThan(50);
    const named = list.components.map(({ name, version }: Component) => `${name}@${version}`);
    expect(named).toEqual(expect.arrayContaining([...installed, ...bundled]));
    const tools = /^(vitest|typescript|@biomejs\/biome|playwright-core)@/;
    expect(named.filter((name: string) => tools.test(name))).toEqual([]);
  }, 120_000);
});
