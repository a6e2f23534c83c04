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
  makeDirectory,
  marked,
  PLACE,
  type RunTool,
  runTool,
  type Site,
  siteOfOptions,
  systemctl,
  write,
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
    const systemd = await systemdVersion(runTool);
    if (!options.dryRun) {
      assertMayChange(site);
      await assertSystemd();
    }
    const install = new Installing(site, options, await realpath(configPath), config, systemd);
    await install.run();
    if (options.json) printJson({ unit: site.unit, did: install.did, advice: install.advice });
    else install.tellTheEnd();
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

async function systemdVersion(run: RunTool): Promise<number> {
  return Number(/systemd (\d+)/.exec(await run(['systemctl', '--version']))?.[1] ?? 0);
}

/** One installation, step by step; each step is told as it is done, or shown where nothing is to be done. */
class Installing {
  readonly #site: Site;
  readonly #options: GlobalOptions & Given<typeof OPTIONS>;
  readonly #configPath: string;
  readonly #config: Config;
  readonly #systemd: number;
  readonly did: string[] = [];
  readonly advice: string[] = [];

  constructor(
    site: Site,
    options: GlobalOptions & Given<typeof OPTIONS>,
    configPath: string,
    config: Config,
    systemd: number,
  ) {
    this.#site = site;
    this.#options = options;
    this.#configPath = configPath;
    this.#config = config;
    this.#systemd = systemd;
  }

  async run(): Promise<void> {
    const { snippets, source, unit, unitFile, dropInFile } = this.#site;
    const needsUser = this.#options.runAs === undefined;
    const files: (readonly [path: string, content: string])[] = [];
    for (const { file, source: snippet } of needsUser ? snippets : [])
      files.push([file, marked(await ownFile(snippet))]);
    files.push([unitFile, marked(await ownFile(source))]);
    files.push([dropInFile, marked(dropIn(await this.#runs()))]);
    for (const [path] of files) await assertOurs(path);
    for (const [path, content] of files) await this.#write(path, content);
    if (needsUser && snippets.length > 0) {
      await this.#run(['systemd-sysusers', 'peersync.conf']);
      await this.#run(['systemd-tmpfiles', '--create', 'peersync.conf']);
    }
    const [stateDir] = writtenDirectories(this.#config);
    for (const path of writtenDirectories(this.#config))
      await this.#directory(path, path === stateDir ? 0o700 : 0o755);
    await this.#lookAround();
    await this.#run(systemctl(this.#site, 'daemon-reload'));
    if (!this.#options.start) return;
    await this.#run(systemctl(this.#site, 'enable', unit));
    await this.#restart(unit);
  }

  /** What it said before it failed to start says why. */
  async #restart(unit: string): Promise<void> {
    try {
      await this.#run(systemctl(this.#site, 'restart', unit));
    } catch (error) {
      const user = this.#site.scope === 'user' ? ['--user'] : [];
      const words = ['journalctl', ...user, '-u', unit, '-n', '10', '-o', 'cat', '--no-pager'];
      const last = await runTool(words).catch(() => '');
      for (const line of last.trimEnd().split('\n')) this.#tell(`  ${safe(line)}`);
      throw error;
    }
  }

  tellTheEnd(): void {
    for (const line of this.advice) print(`! ${line}`);
    const { start, dryRun } = this.#options;
    if (dryRun) {
      print('Nothing was done.');
      return;
    }
    const { scope, unit } = this.#site;
    const user = scope === 'user' ? '--user ' : '';
    print(
      start ? `${unit} runs.` : `${unit} is in place; start it with systemctl ${user}enable --now ${unit}`,
    );
    print('What to type next:');
    for (const line of lookWords(this.#site)) print(`  ${line}`);
  }

  async #runs() {
    const { scope } = this.#site;
    const { runAs } = this.#options;
    return {
      ...{ scope, runAs, config: this.#config, configPath: this.#configPath, systemd: this.#systemd },
      node: await realpath(process.execPath),
      program: join(await realpath(PACKAGE_ROOT), 'dist/cli.js'),
      programRoot: withPackages(await realpath(PACKAGE_ROOT)),
      credentialFile: (credential: string) => this.#credentialFile(credential),
    };
  }

  #credentialFile(credential: string): string {
    const { credentialFile, name } = this.#options;
    if (credentialFile !== undefined && credential === credentialOf(this.#config.peer.auth?.password))
      return resolve(credentialFile);
    const directory = this.#site.scope === 'user' ? join(configHome(), 'peersync') : '/etc/peersync';
    return join(directory, name === undefined ? credential : `${name}.${credential}`);
  }

  /** What would keep it from working, for the user to mend. */
  async #lookAround(): Promise<void> {
    const { scope, unit } = this.#site;
    const folders = this.#config.folders.map(({ path }) => path);
    for (const path of folders)
      if (!(await isThere(path)))
        this.advice.push(`The folder ${path} is not there: make it, then restart ${unit}.`);
    const { peer, status } = this.#config;
    await this.#lookAtSecret("the peer's password", peer.auth?.password);
    await this.#lookAtSecret('the token of the status page', status.token);
    if (scope === 'user') await this.#lookAtLingering();
    else if (!this.#options.dryRun)
      for (const path of [this.#configPath, ...readFiles(this.#config), ...folders]) await this.#lookAt(path);
  }

  async #lookAtSecret(what: string, secret: Secret | undefined): Promise<void> {
    if (secret === undefined) return;
    const credential = credentialOf(secret);
    const file = credential === undefined ? undefined : this.#credentialFile(credential);
    if (file !== undefined && !(await isThere(file)))
      this.advice.push(`Put ${what} into ${file} (chmod 600): it does not start without.`);
    if ('env' in secret)
      this.advice.push(
        `${capital(what)} stands in the environment variable ${secret.env}, which a service does not inherit: use a credential.`,
      );
  }

  async #lookAt(path: string): Promise<void> {
    const user = this.#options.runAs ?? SERVICE_USER;
    if (!(await isThere(path)) || (await mayRead(user, path))) return;
    this.advice.push(
      `The user ${user} may not read ${path}: setfacl -R -m u:${user}:rX,d:u:${user}:rX ${path} (and x on what is above it).`,
    );
  }

  async #lookAtLingering(): Promise<void> {
    const { username } = userInfo();
    if (!(await isThere(join('/var/lib/systemd/linger', username))))
      this.advice.push(`It runs while you are logged in; for always: loginctl enable-linger ${username}`);
  }

  async #write(path: string, content: string): Promise<void> {
    if (this.#options.dryRun) {
      this.#tell(`would write ${path}:\n\n${content.replace(/^(?=.)/gm, '    ')}`);
      return;
    }
    await write(path, content);
    this.#tell(`wrote ${path}`);
  }

  async #directory(path: string, mode: number): Promise<void> {
    if (this.#options.dryRun) {
      if (!(await isThere(path))) this.#tell(`would make the directory ${path}`);
      return;
    }
    const owner = this.#site.scope === 'user' ? undefined : await idOf(this.#options.runAs ?? SERVICE_USER);
    if (await makeDirectory(path, mode, owner)) this.#tell(`made the directory ${path}`);
  }

  async #run(command: readonly string[]): Promise<void> {
    if (!this.#options.dryRun) await runTool(command);
    this.#tell(`${this.#options.dryRun ? 'would run' : 'ran'} ${command.join(' ')}`);
  }

  #tell(what: string): void {
    this.did.push(what);
    if (!this.#options.json) print(what);
  }
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
