import { readdir, readFile, realpath } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { basename, join, sep } from 'node:path';
import { z } from 'zod';
import { define, type Given } from '../../cli/command.js';
import { type GlobalOptions, isThere } from '../../cli/global-options.js';
import * as option from '../../cli/option.js';
import { answer } from '../../cli/output.js';
import { named } from '../../cli/text.js';
import { UsageError } from '../../cli/usage.js';
import type { Config } from '../../config/config.js';
import { loadConfig } from '../../config/load.js';
import { EXIT, PeersyncError, systemCode } from '../../lib/errors.js';
import { writtenPath } from '../../lib/home.js';
import { PACKAGE_ROOT } from '../../lib/process.js';
import { noFleet } from '../check-fleet.js';
import { openToOthers } from '../check-machine.js';
import {
  assertOurs,
  configHome,
  credentialOf,
  dropIn,
  isOurs,
  type Role,
  readFiles,
  runTool,
  type Site,
  Steps,
  secretsOf,
  siteOf,
  writtenDirectories,
} from './site.js';

/** The user of a system service, as in the unit. */
const SERVICE_USER = 'peersync';

/** Which service a command is about. */
const PLACE = {
  user: option.flag('A service of your own, which needs no root and sees what you see'),
  worker: option.flag('A worker, which helps the peersync of another machine'),
  name: option.value('One of several services on this machine: letters, digits and any of - _ .'),
} as const;
const DRY_RUN = option.flag('Only show what would be done');

/**
 * @throws UsageError for a name that systemd would read as something else, and for a worker of a
 *   user
 */
function siteOfOptions({ user, name, worker }: Given<typeof PLACE>): Site {
  assertName('--name', name, /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$/);
  if (user && worker)
    throw new UsageError(
      '--user: a worker is a service of the system.',
      'Leave --user out; as yourself, start `peersync worker` by hand.',
    );
  return siteOf({
    scope: user ? 'user' : 'system',
    role: worker ? 'worker' : 'daemon',
    name,
    configHome: configHome(),
  });
}

function assertName(option: string, name: string | undefined, right: RegExp): void {
  if (name !== undefined && !right.test(name))
    throw new UsageError(
      `${option}: received ${JSON.stringify(name)}.`,
      'Give a name of letters, digits and any of - _ .',
    );
}

/** @throws PeersyncError SERVICE_NOT_ROOT if this user may not change a service of the system */
function assertMayChange({ scope }: Site): void {
  if (scope === 'user' || process.getuid?.() === 0) return;
  throw new PeersyncError({
    code: 'SERVICE_NOT_ROOT',
    message: 'Only root may change the services of the system.',
    hint: 'Say it again with sudo, or with --user for a service of your own.',
    exitCode: EXIT.usage,
  });
}

/** @throws PeersyncError SERVICE_NO_SYSTEMD where another program started the system */
async function assertSystemd(): Promise<void> {
  if (await isThere('/run/systemd/system')) return;
  throw new PeersyncError({
    code: 'SERVICE_NO_SYSTEMD',
    message: 'This system was not started by systemd.',
    hint: 'Start `peersync run` by what starts services here; `--dry-run` shows the units.',
  });
}

/** Returns the commands that show the service. */
function lookLines({ command, role, unit, scope }: Site): readonly string[] {
  const journal = scope === 'user' ? 'journalctl --user' : 'journalctl';
  return [
    `  ${command.join(' ')} status ${unit}    how it stands`,
    `  ${journal} -u ${unit} -f    what it says, as it says it`,
    role === 'worker'
      ? `  ${command.join(' ')} restart ${unit}    takes a changed configuration up`
      : `  ${command.join(' ')} reload ${unit}    takes a changed configuration up`,
  ];
}

const INSTALL_OPTIONS = {
  ...PLACE,
  start: option.unlessNo('Start it now and with the machine; --no-start leaves that to you'),
  'dry-run': DRY_RUN,
  'run-as': option.value(
    `The user that a system service runs as; ${SERVICE_USER}, which is made, unless given`,
  ),
  'credential-file': option.value(
    "The file with the peer's password, where the configuration names a systemd credential",
  ),
} as const;

/** One installation and its choices. */
interface Job {
  readonly site: Site;
  readonly options: GlobalOptions & Given<typeof INSTALL_OPTIONS>;
  readonly config: Config;
  readonly configPath: string;
}

const workShape = z.object({
  unit: z.string(),
  did: z.array(z.string()).describe('What was done, or would be done, in order.'),
});

/** Puts a unit of systemd in place, made for this configuration, and starts it. */
const serviceInstall = define({
  output: workShape.extend({ advice: z.array(z.string()) }),
  options: INSTALL_OPTIONS,
  examples: [
    ['sudo $0 service install', 'A service of the system'],
    ['$0 service install --user', 'A service of your own'],
    ['sudo $0 service install --worker', 'On a machine that helps another one'],
    ['$0 service install --dry-run', 'See the units first'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    const { dryRun, runAs, start } = options;
    if (runAs !== undefined && site.scope === 'user')
      throw new UsageError('--run-as: a service of your own runs as you.');
    assertName('--run-as', runAs, /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/);
    const { path, config } = await loadConfig(options.config);
    if (options.worker && config.fleet === undefined) throw noFleet();
    const job: Job = { site, options, config, configPath: await realpath(path) };
    const [, version] = /systemd (\d+)/.exec(await runTool(['systemctl', '--version'])) ?? [];
    if (!dryRun) {
      assertMayChange(site);
      await assertSystemd();
    }
    const steps = new Steps(options);
    await install(job, Number(version ?? 0), steps);
    const advice = await adviceFor(job);
    await steps.run([...site.command, 'daemon-reload']);
    for (const word of start ? ['enable', 'restart'] : [])
      await steps.run([...site.command, word, site.unit]);
    const next = `is in place; start it with ${site.command.join(' ')} enable --now ${site.unit}`;
    return answer(options, { unit: site.unit, did: steps.did, advice }, () => [
      ...advice.map((line) => `! ${line}`),
      ...(dryRun
        ? ['Nothing was done.']
        : [`${site.unit} ${start ? 'runs.' : next}`, 'What to type next:', ...lookLines(site)]),
    ]);
  },
});

/** Puts everything in place, and starts nothing. */
async function install(job: Job, systemd: number, steps: Steps): Promise<void> {
  const { config, configPath, options, site } = job;
  const { runAs } = options;
  const program = await realpath(PACKAGE_ROOT);
  const drop = dropIn({
    scope: site.scope,
    role: site.role,
    runAs,
    config,
    configPath,
    systemd,
    node: await realpath(process.execPath),
    program: join(program, 'dist/cli.js'),
    programRoot: withPackages(program),
    credentialFile: (credential) => credentialFile(job, credential),
  });
  const snippets = runAs === undefined ? site.snippets : [];
  const files: (readonly [path: string, content: string])[] = [];
  for (const { file, source } of [...snippets, { file: site.unitFile, source: site.source }])
    files.push([file, await readFile(join(PACKAGE_ROOT, 'systemd', source), 'utf8')]);
  files.push([site.dropInFile, drop]);
  for (const [path] of files) await assertOurs(path);
  for (const [path, content] of files) await steps.write(path, content);
  if (snippets.length > 0) {
    await steps.run(['systemd-sysusers', 'peersync.conf']);
    await steps.run(['systemd-tmpfiles', '--create', 'peersync.conf']);
  }
  const owner = site.scope === 'user' ? undefined : (runAs ?? SERVICE_USER);
  for (const path of writtenDirectories(config, site.role))
    await steps.directory(path, path === config.state.dir ? 0o700 : 0o755, owner);
}

function credentialFile({ config, options, site }: Job, credential: string): string {
  const { credentialFile: given, name } = options;
  if (given !== undefined && credential === credentialOf(config.peer.auth?.password))
    return writtenPath(given);
  const directory = site.scope === 'user' ? join(configHome(), 'peersync') : '/etc/peersync';
  return join(directory, name === undefined ? credential : `${name}.${credential}`);
}

/** A package and those that it is made of, which may lie beside it. */
function withPackages(root: string): string {
  const at = root.indexOf(`${sep}node_modules${sep}`);
  return at === -1 ? root : join(root.slice(0, at), 'node_modules');
}

/** Returns advice about faults that would keep the service from working. */
async function adviceFor(job: Job): Promise<string[]> {
  const { config, configPath, options, site } = job;
  const user = options.runAs ?? SERVICE_USER;
  const advice: string[] = [];
  const folders = config.folders.map(({ path }) => path);
  for (const path of folders)
    if (!(await isThere(path)))
      advice.push(`The folder ${path} is not there: make it, then restart ${site.unit}.`);
  for (const { what, secret } of secretsOf(config, site.role)) {
    const credential = credentialOf(secret);
    const file = credential === undefined ? undefined : credentialFile(job, credential);
    if (file !== undefined && !(await isThere(file)))
      advice.push(`Put ${what} into ${file} (chmod 600): it does not start without.`);
    if (secret !== undefined && 'env' in secret)
      advice.push(
        `Use a credential for ${what}: a service does not inherit the environment variable ${secret.env}.`,
      );
  }
  const others = site.role === 'worker' ? undefined : await openToOthers(config);
  for (const way of others?.open ?? [])
    advice.push(`Others who can log in to this machine (${others?.accounts}) ${way}.`);
  const lingers = join('/var/lib/systemd/linger', userInfo().username);
  if (site.scope === 'user' && !(await isThere(lingers)))
    advice.push(
      `It runs while you are logged in; for always: loginctl enable-linger ${basename(lingers)}`,
    );
  if (site.scope === 'user' || options.dryRun) return advice;
  for (const path of [configPath, ...readFiles(config, site.role), ...folders])
    if ((await isThere(path)) && !(await mayRead(user, path)))
      advice.push(
        `The user ${user} may not read ${path}: setfacl -R -m u:${user}:rX,d:u:${user}:rX ${path} (and x on what is above it).`,
      );
  return advice;
}

/** Returns whether a user may read a file or directory, as far as that can be tried. */
async function mayRead(user: string, path: string): Promise<boolean> {
  return await runTool(['runuser', '-u', user, '--', 'test', '-r', path]).then(
    () => true,
    ({ cause }: PeersyncError) => !(cause instanceof Error && 'code' in cause && cause.code === 1),
  );
}

/** The command that installs each. */
const INSTALLS: Readonly<Record<Role, string>> = {
  daemon: '`peersync service install`',
  worker: '`peersync service install --worker`',
};
const PROPERTIES =
  'LoadState,UnitFileState,ActiveState,SubState,Result,MainPID,StatusText,NRestarts,ActiveEnterTimestamp';

/** Shows the state of the service as systemd reports it. */
const serviceStatus = define({
  output: z.object({
    unit: z.string(),
    installed: z.boolean(),
    enabled: z.boolean(),
    active: z.string(),
    state: z.string(),
  }),
  options: PLACE,
  examples: [
    ['$0 service status', 'The service of the system'],
    ['$0 service status --user --name docs', 'One of your own'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    const show = [...site.command, 'show', site.unit, '--property', PROPERTIES];
    const text = await runTool(show).catch(async (error: unknown) => {
      if (!(error instanceof Error && systemCode(error.cause) === 'ENOENT')) await assertSystemd();
      throw error;
    });
    const shown: Record<string, string | undefined> = Object.fromEntries(
      Array.from(text.matchAll(/^(\w+)=(.*)$/gm), ([, name, value]) => [name, value || undefined]),
    );
    const report = {
      unit: site.unit,
      installed: await isOurs(site.dropInFile),
      found: shown.LoadState === 'loaded',
      enabled: shown.UnitFileState === 'enabled',
      active: shown.ActiveState ?? 'unknown',
      state: shown.SubState ?? 'unknown',
      result: shown.Result ?? 'unknown',
      pid: Number(shown.MainPID ?? 0) || undefined,
      says: shown.StatusText,
      restarts: Number(shown.NRestarts ?? 0),
      since: shown.ActiveEnterTimestamp,
    };
    answer(options, report, () => {
      if (!report.found)
        return [`${site.unit} is not installed; ${INSTALLS[site.role]} does that.`];
      const rows = Object.entries(report).map(
        ([name, value]) => [name, value?.toString()] as const,
      );
      return [...named(rows), 'More:', ...lookLines(site)];
    });
    return report.active === 'active' ? EXIT.done : EXIT.failure;
  },
});

/** Takes away what `service install` put in place, and nothing else. */
const serviceUninstall = define({
  output: workShape,
  options: { ...PLACE, 'dry-run': DRY_RUN },
  examples: [
    ['sudo $0 service uninstall', 'The service of the system'],
    ['$0 service uninstall --user', 'Your own'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    const { command, unit } = site;
    if (!options.dryRun) assertMayChange(site);
    if (!(await isOurs(site.dropInFile)))
      throw new PeersyncError({
        code: 'SERVICE_MISSING',
        message: `${unit} was not installed by \`peersync service install\`.`,
        hint: 'See which there are with `systemctl list-unit-files "peersync*"`; --name and --user say which one is meant.',
      });
    const steps = new Steps(options);
    await steps.run([...command, 'disable', '--now', unit]);
    for (const path of await filesOf(site)) if (await isOurs(path)) await steps.remove(path);
    await steps.run([...command, 'daemon-reload']);
    if (!options.dryRun) await runTool([...command, 'reset-failed', unit]).catch(() => {});
    const stays = 'The configuration, what peersync remembers, and its user stay.';
    return answer(options, { unit, did: steps.did }, () => [stays]);
  },
});

/** Returns the files of the installation that no other service of ours needs. */
async function filesOf({
  directory,
  dropInFile,
  snippets,
  unit,
  unitFile,
}: Site): Promise<string[]> {
  const others: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    if (!/^peersync(-worker)?(@.*)?\.service\.d$/.test(name) || name === `${unit}.d`) continue;
    if (await isOurs(join(directory, name, basename(dropInFile)))) others.push(name);
  }
  const template = basename(unitFile, '.service');
  const needsUnit =
    unitFile.endsWith('@.service') && others.some((other) => other.startsWith(template));
  return [
    dropInFile,
    ...(needsUnit ? [] : [unitFile]),
    ...(others.length > 0 ? [] : snippets.map(({ file }) => file)),
  ];
}

/** The daemon as a service of systemd. */
export const serviceCommand = define({
  commands: [
    {
      usage: 'install',
      describe: 'Put a service in place for this configuration, and start it',
      ...serviceInstall,
    },
    {
      usage: 'uninstall',
      describe: 'Stop the service and take away what `service install` wrote',
      ...serviceUninstall,
    },
    {
      usage: 'status',
      describe: 'Tell whether the service is installed and runs',
      ...serviceStatus,
    },
  ],
});
