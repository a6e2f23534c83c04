import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join, resolve, sep } from 'node:path';
import type { Config } from '../../config/config.js';
import type { Secret } from '../../config/fields.js';
import { loadConfig } from '../../config/load.js';
import { EXIT } from '../../lib/errors.js';
import { PACKAGE_ROOT } from '../../lib/process.js';
import { define, type Given, type GlobalOptions, isThere, print, printJson, UsageError } from '../context.js';
import { safe } from '../text.js';
import {
  assertMayChange,
  assertOurs,
  assertSystemd,
  configHome,
  lookWords,
  marked,
  PLACE,
  runTool,
  type Site,
  Steps,
  siteOfOptions,
  systemctl,
} from './site.js';
import { credentialOf, dropIn, readFiles, writtenDirectories } from './unit-drop-in.js';

/** The user of a system service, as in the unit. */
const SERVICE_USER = 'peersync';

const OPTIONS = {
  ...PLACE,
  start: {
    type: 'boolean',
    default: true,
    describe: 'Start it now and with the machine; --no-start leaves that to you',
  },
  'dry-run': { type: 'boolean', default: false, describe: 'Only show what would be done' },
  'run-as': {
    type: 'string',
    describe: `The user that a system service runs as; ${SERVICE_USER}, which is made, unless given`,
  },
  'credential-file': {
    type: 'string',
    describe: "The file with the peer's password, where the configuration names a systemd credential",
  },
} as const;

/** Puts a unit of systemd in place, made for this configuration, and starts it. */
export const serviceInstall = define({
  options: OPTIONS,
  examples: [
    ['sudo $0 service install', 'A service of the system'],
    ['$0 service install --user', 'A service of your own'],
    ['$0 service install --dry-run', 'See the units first'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    checkUser(site, options.runAs);
    const { path: configPath, config } = await loadConfig(options.config);
    const systemd = await systemdVersion();
    if (!options.dryRun) {
      assertMayChange(site);
      await assertSystemd();
    }
    const steps = new Steps(options);
    const advice: string[] = [];
    const job: Job = {
      site,
      options,
      configPath: await realpath(configPath),
      config,
      systemd,
      steps,
      advice,
    };
    await install(job);
    if (options.json) printJson({ unit: site.unit, did: steps.did, advice });
    else tellTheEnd(job);
    return EXIT.done;
  },
});

/** @throws UsageError for a user that nobody could be, or where none can be chosen */
function checkUser({ scope }: Site, runAs: string | undefined): void {
  if (runAs === undefined) return;
  if (scope === 'user') throw new UsageError('--run-as: a service of your own runs as you.');
  if (!/^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(runAs))
    throw new UsageError(`--run-as: received ${JSON.stringify(runAs)}; expected the name of a user.`);
}

async function systemdVersion(): Promise<number> {
  return Number(/systemd (\d+)/.exec(await runTool(['systemctl', '--version']))?.[1] ?? 0);
}

/** One installation. */
interface Job {
  readonly site: Site;
  readonly options: GlobalOptions & Given<typeof OPTIONS>;
  readonly configPath: string;
  readonly config: Config;
  /** Its version. */
  readonly systemd: number;
  readonly steps: Steps;
  /** What is left to the user. */
  readonly advice: string[];
}

/** Puts everything in place. */
async function install(job: Job): Promise<void> {
  const { config, options, site, steps } = job;
  const { snippets, source, unit, unitFile, dropInFile } = site;
  const needsUser = options.runAs === undefined;
  const files: (readonly [path: string, content: string])[] = [];
  for (const { file, source: snippet } of needsUser ? snippets : [])
    files.push([file, marked(await ownFile(snippet))]);
  files.push([unitFile, marked(await ownFile(source))]);
  files.push([dropInFile, marked(dropIn(await runs(job)))]);
  for (const [path] of files) await assertOurs(path);
  for (const [path, content] of files) await steps.write(path, content);
  if (needsUser && snippets.length > 0) {
    await steps.run(['systemd-sysusers', 'peersync.conf']);
    await steps.run(['systemd-tmpfiles', '--create', 'peersync.conf']);
  }
  const [stateDir] = writtenDirectories(config);
  for (const path of writtenDirectories(config)) await makeFor(job, path, path === stateDir ? 0o700 : 0o755);
  await lookAround(job);
  await steps.run(systemctl(site, 'daemon-reload'));
  if (!options.start) return;
  await steps.run(systemctl(site, 'enable', unit));
  await restart(job, unit);
}

/** What it said before it failed to start says why. */
async function restart(job: Job, unit: string): Promise<void> {
  try {
    await job.steps.run(systemctl(job.site, 'restart', unit));
  } catch (error) {
    const user = job.site.scope === 'user' ? ['--user'] : [];
    const words = ['journalctl', ...user, '-u', unit, '-n', '10', '-o', 'cat', '--no-pager'];
    const last = await runTool(words).catch(() => '');
    for (const line of last.trimEnd().split('\n')) job.steps.tell(`  ${safe(line)}`);
    throw error;
  }
}

function tellTheEnd({ advice, options, site }: Job): void {
  for (const line of advice) print(`! ${line}`);
  const { start, dryRun } = options;
  if (dryRun) {
    print('Nothing was done.');
    return;
  }
  const { scope, unit } = site;
  const user = scope === 'user' ? '--user ' : '';
  print(start ? `${unit} runs.` : `${unit} is in place; start it with systemctl ${user}enable --now ${unit}`);
  print('What to type next:');
  for (const line of lookWords(site)) print(`  ${line}`);
}

async function runs(job: Job) {
  const { scope } = job.site;
  const { runAs } = job.options;
  return {
    ...{ scope, runAs, config: job.config, configPath: job.configPath, systemd: job.systemd },
    node: await realpath(process.execPath),
    program: join(await realpath(PACKAGE_ROOT), 'dist/cli.js'),
    programRoot: withPackages(await realpath(PACKAGE_ROOT)),
    credentialFile: (credential: string) => credentialFile(job, credential),
  };
}

function credentialFile(job: Job, credential: string): string {
  const { credentialFile, name } = job.options;
  if (credentialFile !== undefined && credential === credentialOf(job.config.peer.auth?.password))
    return resolve(credentialFile);
  const directory = job.site.scope === 'user' ? join(configHome(), 'peersync') : '/etc/peersync';
  return join(directory, name === undefined ? credential : `${name}.${credential}`);
}

/** What would keep it from working, for the user to mend. */
async function lookAround(job: Job): Promise<void> {
  const { scope, unit } = job.site;
  const folders = job.config.folders.map(({ path }) => path);
  for (const path of folders)
    if (!(await isThere(path)))
      job.advice.push(`The folder ${path} is not there: make it, then restart ${unit}.`);
  const { peer, status } = job.config;
  await lookAtSecret(job, "the peer's password", peer.auth?.password);
  await lookAtSecret(job, 'the token of the status page', status.token);
  if (scope === 'user') await lookAtLingering(job);
  else if (!job.options.dryRun)
    for (const path of [job.configPath, ...readFiles(job.config), ...folders]) await lookAt(job, path);
}

async function lookAtSecret(job: Job, what: string, secret: Secret | undefined): Promise<void> {
  if (secret === undefined) return;
  const credential = credentialOf(secret);
  const file = credential === undefined ? undefined : credentialFile(job, credential);
  if (file !== undefined && !(await isThere(file)))
    job.advice.push(`Put ${what} into ${file} (chmod 600): it does not start without.`);
  if ('env' in secret)
    job.advice.push(
      `${capital(what)} stands in the environment variable ${secret.env}, which a service does not inherit: use a credential.`,
    );
}

async function lookAt(job: Job, path: string): Promise<void> {
  const user = job.options.runAs ?? SERVICE_USER;
  if (!(await isThere(path)) || (await mayRead(user, path))) return;
  job.advice.push(
    `The user ${user} may not read ${path}: setfacl -R -m u:${user}:rX,d:u:${user}:rX ${path} (and x on what is above it).`,
  );
}

async function lookAtLingering(job: Job): Promise<void> {
  const { username } = userInfo();
  if (!(await isThere(join('/var/lib/systemd/linger', username))))
    job.advice.push(`It runs while you are logged in; for always: loginctl enable-linger ${username}`);
}

async function makeFor({ options, site, steps }: Job, path: string, mode: number): Promise<void> {
  const isOwn = site.scope === 'user' || options.dryRun;
  await steps.directory(path, mode, isOwn ? undefined : await idOf(options.runAs ?? SERVICE_USER));
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

function ownFile(name: string): Promise<string> {
  return readFile(join(PACKAGE_ROOT, 'systemd', name), 'utf8');
}

/** A package and those that it is made of, which may lie beside it. */
function withPackages(root: string): string {
  const at = root.indexOf(`${sep}node_modules${sep}`);
  return at === -1 ? root : join(root.slice(0, at), 'node_modules');
}

async function idOf(user: string): Promise<{ readonly uid: number; readonly gid: number }> {
  const [uid, gid] = await Promise.all([runTool(['id', '-u', user]), runTool(['id', '-g', user])]);
  return { uid: Number(uid), gid: Number(gid) };
}

/** Whether a user may read a file or directory, as far as that can be tried. */
function mayRead(user: string, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    execFile('runuser', ['-u', user, '--', 'test', '-r', path], (error) => {
      resolve(error === null || error.code !== 1);
    });
  });
}
