import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { withConfig } from '../../src/lib/hint.js';
import { shellWord } from '../../src/lib/text.js';
import type { StatusReport } from '../../src/report/status-report.js';
import { type Ended, Running } from '../support/cli.js';
import { writeConfig } from '../support/config.js';
import { COMMAND, hintsInSource } from '../support/hints.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';

/** A folder and a mirror have it. */
const NAME = "it's mine";

/** Real values for what a text leaves open. */
const VALUES: Readonly<Record<string, string>> = {
  PATH: shellWord(`${NAME}/a b.md`),
  FILE: shellWord(`${NAME}/a b.md`),
  URL: 'https://files.example.org/elsewhere/a%20b.md',
  WORDS: 'words',
  NAME: 'object',
  TABLE: 'prices',
  KEY: 'k',
  'COLUMN=VALUE': 'price=3',
  '…': 'status',
  '${shellWord(safe(path))}': shellWord(`${NAME}/a b.md`),
  '${shellWord(folder)}': shellWord(NAME),
  '${shellWord(folder.name)}': shellWord(NAME),
  '${shellWord(name)}': shellWord(NAME),
  '${shellWord(table)}': 'prices',
  '{mirror|shell}': shellWord(NAME),
  '${word}': shellWord(NAME),
  "${remaining.map(shellWord).join(' ')}": 'https://files.example.org/elsewhere/a%20b.md',
  '${status}': 'pending',
  '${command}': 'once',
  '${name}': 'table get',
  '${shellWord(file)}': shellWord(`${NAME}/a b.md`),
};
/** Texts that are no hints, or are put together of others. */
const NO_HINTS: readonly string[] = ['lib/hint.ts', 'cli/man-page.ts'];

const lines = hintsInSource()
  .filter(({ files }) => files.some((file) => !NO_HINTS.includes(file)))
  .map(({ line }) => line);

/** The words of a line as a shell reads it, without `sudo` and the name of the program. */
function wordsOf(line: string): string[] {
  const script = `sudo() { shift 2; "$@"; }; peersync() { printf '%s\\0' "$@"; }; ${line}`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

let place = { directory: '', config: '' };

beforeAll(() => {
  const directory = join(temporaryDirectory('file'), "it's a place");
  mkdirSync(directory);
  const config = writeConfig(directory, {
    peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
    folders: [{ name: NAME, collection: 'mine', url: 'https://files.example.org/mine/' }],
    mirror: { tables: [{ table: 'prices', name: NAME }] },
  });
  writeFileSync(join(directory, NAME, 'a b.md'), 'Some words.');
  place = { directory, config };
});

/** Commands that run until they are stopped, with options for a test and their first words. */
const SERVING: Readonly<Record<string, { readonly options: string[]; readonly says: string }>> = {
  run: { options: [], says: 'watching' },
  peer: { options: ['--port', '0'], says: 'the peer listens' },
};

async function execute(words: readonly string[], cwd: string): Promise<Ended> {
  const isOfPeer = words[0] === 'peer' && ['backup', 'check', 'restore'].includes(words[1] ?? '');
  const serving = isOfPeer ? undefined : SERVING[words[0] ?? ''];
  if (serving === undefined) return await peersync(words, { cwd });
  const run = new Running([...words, ...serving.options], { cwd });
  await run.says(serving.says);
  return await run.kill('SIGTERM');
}

/**
 * Commands that ask a person, or have nothing to do. Any other command with exit code 2 was used
 * wrongly.
 */
const RIGHT_USAGE =
  /there is nobody to help|no terminal to ask on|wait for your approval|reports nothing that could be accepted|is there already|nothing of it is forgotten/;

function expectAccepted(line: string, { code, stderr, stdout }: Ended): void {
  const what = `${line}\n${stdout}\n${stderr}`;
  expect(stderr, what).not.toMatch(/should not have happened/);
  if (code === 2) expect(stderr, what).toMatch(RIGHT_USAGE);
  else expect([0, 1, 3, 4], what).toContain(code);
}

describe('a command that a message names', () => {
  it.each(lines)('works as printed, with -c and without: %s', async (hint) => {
    const known = Object.entries(VALUES).sort(([a], [b]) => b.length - a.length);
    const line = known.reduce((text, [name, value]) => text.replaceAll(name, () => value), hint);
    // A new text with another gap needs a value above.
    expect(line).not.toMatch(/\$?\{|\b[A-Z]{2,}\b/);
    const { config, directory } = place;
    const named = withConfig(`\`${line}\``, config).slice(1, -1);
    if (!/--help|schema/.test(line)) expect(named).toContain(` -c ${shellWord(config)}`);
    for (const [text, cwd] of [
      [named, temporaryDirectory()],
      [line, directory],
    ] as const) {
      const words = wordsOf(text);
      if (words[0] === 'service') words.push('--dry-run');
      if (words[0] === 'init' && text === named) words[words.length - 1] = join(cwd, 'new.json');
      expectAccepted(text, await execute(words, cwd));
    }
  });
});

/** Every command in what was said; each is a line that works. */
async function expectWorking(output: string, config: string): Promise<void> {
  for (const line of new Set(Array.from(output.matchAll(COMMAND), ([, line = '']) => line))) {
    if (!/--help|schema/.test(line)) expect(line).toContain(` -c ${shellWord(config)}`);
    const example = line.replaceAll('PATH', VALUES.PATH ?? '');
    expectAccepted(example, await execute(wordsOf(example), temporaryDirectory()));
  }
}

describe('a message with a configuration other than the default', () => {
  async function damaged() {
    const directory = temporaryDirectory();
    const config = writeConfig(directory, {
      peer: { url: 'embedded', embedded: { dir: './peer', port: 0 } },
      folders: [{ name: NAME, collection: 'mine', url: 'https://files.example.org/mine/' }],
      status: { listen: '127.0.0.1:0' },
    });
    writeFileSync(join(directory, NAME, 'a b.md'), 'Some words.');
    writeFileSync(join(directory, NAME, 'broken.pdf'), '%PDF-1.4 and no more');
    return { directory, config, run: (...args: string[]) => peersync([...args, '-c', config]) };
  }

  it('names it in each command in status, list, why, check, once, watch, pause and errors', async () => {
    const { config, directory, run } = await damaged();
    const watch = new Running(['watch', '-c', config]);
    await watch.says('waiting for it');
    await watch.kill('SIGINT');
    const file = join(directory, NAME, 'broken.pdf');
    const before = await run('why', join(directory, NAME, 'a b.md'));
    await run('once');
    const answers = [
      before,
      await run('pause'),
      await run('status'),
      await run('once', '--timeout', '5s'),
      await run('mirror'),
      await run('check'),
      await run('why', file),
      await run('list'),
      await run('resume'),
      await run('rescan'),
    ];
    const output = [watch, ...answers].map(({ stderr, stdout }) => `${stdout}${stderr}`).join('\n');
    for (const name of ['run', 'once', 'resume', 'list --status quarantined', 'why PATH'])
      expect(output).toContain(`\`peersync ${name} -c ${shellWord(config)}`);
    expect(output).toContain(`\`peersync retry ${shellWord(file)} -c ${shellWord(config)}\``);
    const json = await run('list', '--status', 'quarantined', '--json');
    expect(json.stdout).not.toBe('');
    await run('pause');
    const status = JSON.parse((await run('status', '--json')).stdout);
    expect(JSON.stringify(status.conditions)).toContain(`\`peersync resume -c ${config}\``);
    await expectWorking(output, config);
  });

  it('names it on the page and in the log of the daemon', async () => {
    const { config, run } = await damaged();
    const daemon = new Running(['run', '-c', config]);
    await daemon.says('status page at');
    const page = /status page at ([^\s"]+)/.exec(daemon.stdout)?.[1];
    expect((await run('pause')).code).toBe(0);
    await daemon.says(`paused until \`peersync resume -c ${shellWord(config)}\``);
    const hints = async () => {
      const status = (await (await fetch(`${page}api/status`)).json()) as StatusReport;
      return status.conditions.map(({ hint }) => hint).join('\n');
    };
    await until(
      async () => /peersync resume -c/.test(await hints()),
      'the page tells the end of a pause',
    );
    await expectWorking(await hints(), config);
    const live = await fetch(`${page}api/live`);
    const reader = live.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('event: recents')) text += (await reader?.read())?.value ?? '';
    await reader?.cancel();
    expect(text).toContain(`\`peersync resume -c ${config}\``);
    expect(text).not.toContain('`peersync resume`');
    await daemon.kill('SIGTERM');
  });

  it('begins with npx in a checkout: in errors, JSON, and on the page of the daemon', async () => {
    const { config } = await damaged();
    const env = { npm_execpath: '/usr/lib/npm-cli.js', PATH: '/usr/bin:/bin' };
    const cwd = dirname(config);
    const run = (...args: string[]) => peersync([...args, '-c', config], { env, cwd });
    const wrong = await peersync(['list', '--wrong'], { env, cwd });
    expect(wrong.stderr).toContain('`npx peersync list --help`');
    const daemon = new Running(['run', '-c', config], { env });
    await daemon.says('status page at');
    const page = /status page at ([^\s"]+)/.exec(daemon.stdout)?.[1];
    expect((await run('pause')).stdout).toContain(`\`npx peersync resume -c ${config}\``);
    const status = await run('status', '--json');
    expect(status.stdout).toContain(`\`npx peersync resume -c ${config}\``);
    const live = await fetch(`${page}api/status`);
    expect(await live.text()).toContain(`\`npx peersync resume -c ${config}\``);
    await daemon.kill('SIGTERM');
  });
});
