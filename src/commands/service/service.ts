import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { EXIT, PeersyncError, systemCode } from '../../lib/errors.js';
import { define, print, printJson } from '../context.js';
import { serviceInstall } from './install.js';
import {
  assertMayChange,
  assertSystemd,
  isOurs,
  lookWords,
  PLACE,
  runTool,
  type Site,
  Steps,
  siteOfOptions,
  systemctl,
} from './site.js';

/** How the service stands, as systemd knows it. */
const serviceStatus = define({
  options: PLACE,
  examples: [
    ['$0 service status', 'The service of the system'],
    ['$0 service status --user --name docs', 'One of your own'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    const shown = properties(
      await runTool(
        systemctl(
          site,
          ...['show', site.unit, '--property'],
          'LoadState,UnitFileState,ActiveState,SubState,Result,MainPID,StatusText,NRestarts,ActiveEnterTimestamp',
        ),
      ).catch(async (error: unknown) => {
        const isMissing = error instanceof Error && systemCode(error.cause) === 'ENOENT';
        if (!isMissing) await assertSystemd();
        throw error;
      }),
    );
    const report = {
      unit: site.unit,
      installed: await isOurs(site.dropInFile),
      found: shown.LoadState === 'loaded',
      enabled: shown.UnitFileState === 'enabled',
      active: shown.ActiveState ?? 'unknown',
      state: shown.SubState ?? 'unknown',
      result: shown.Result ?? 'unknown',
      ...(Number(shown.MainPID) > 0 ? { pid: Number(shown.MainPID) } : {}),
      ...(shown.StatusText ? { says: shown.StatusText } : {}),
      restarts: Number(shown.NRestarts ?? 0),
      ...(shown.ActiveEnterTimestamp ? { since: shown.ActiveEnterTimestamp } : {}),
    };
    if (options.json) printJson(report);
    else if (!report.found) print(`${site.unit} is not installed; \`peersync service install\` does that.`);
    else {
      const { active, state, since, result } = report;
      print(`unit       ${site.unit} (${report.installed ? 'by service install' : 'by other means'})`);
      print(`state      ${active} (${state})${active === 'active' && since ? ` since ${since}` : ''}`);
      if (active === 'failed') print(`result     ${result}`);
      if (report.pid !== undefined) print(`process    ${report.pid}`);
      if (report.says !== undefined) print(`says       ${report.says}`);
      print(`at start   ${report.enabled ? 'started with the machine' : 'not started with the machine'}`);
      print(`restarts   ${report.restarts}`);
      print('More:');
      for (const line of lookWords(site)) print(`  ${line}`);
    }
    return report.active === 'active' ? EXIT.done : EXIT.failure;
  },
});

/** `NAME=value` lines. */
function properties(text: string): Readonly<Record<string, string>> {
  const pairs = text.split('\n').flatMap((line): (readonly [string, string])[] => {
    const at = line.indexOf('=');
    return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
  });
  return Object.fromEntries(pairs);
}

/** Takes away what `service install` put in place, and nothing else. */
const serviceUninstall = define({
  options: {
    ...PLACE,
    'dry-run': { type: 'boolean', default: false, describe: 'Only show what would be done' },
  },
  examples: [
    ['sudo $0 service uninstall', 'The service of the system'],
    ['$0 service uninstall --user', 'Your own'],
  ],
  run: async (options) => {
    const site = siteOfOptions(options);
    const { dryRun } = options;
    if (!dryRun) assertMayChange(site);
    if (!(await isOurs(site.dropInFile)))
      throw new PeersyncError({
        code: 'SERVICE_MISSING',
        message: `${site.unit} was not installed by \`peersync service install\`.`,
        hint: 'See which there are with `systemctl list-unit-files "peersync*"`; --name and --user say which one is meant.',
      });
    const steps = new Steps(options);
    await steps.run(systemctl(site, 'disable', '--now', site.unit));
    for (const path of await filesOf(site)) await steps.remove(path);
    await steps.run(systemctl(site, 'daemon-reload'));
    if (!dryRun) await runTool(systemctl(site, 'reset-failed', site.unit)).catch(() => {});
    if (options.json) printJson({ unit: site.unit, did: steps.did });
    else print('The configuration, what peersync remembers, and its user stay.');
    return EXIT.done;
  },
});

/** What the installation wrote, and nobody else of ours needs. */
async function filesOf(site: Site): Promise<string[]> {
  const others = await otherDropIns(site);
  const files = [site.dropInFile];
  const needsUnit = site.unitFile.endsWith('@.service') && others.some((other) => other.includes('@'));
  if (!needsUnit) files.push(site.unitFile);
  if (others.length === 0) files.push(...site.snippets.map(({ file }) => file));
  const ours: string[] = [];
  for (const file of files) if (await isOurs(file)) ours.push(file);
  return ours;
}

/** The directories of drop-ins of other services of ours. */
async function otherDropIns({ directory, unit, dropInFile }: Site): Promise<string[]> {
  const others: string[] = [];
  for (const name of await readdir(directory).catch(() => [])) {
    if (!/^peersync(@.*)?\.service\.d$/.test(name) || name === `${unit}.d`) continue;
    if (await isOurs(`${directory}/${name}/${basename(dropInFile)}`)) others.push(name);
  }
  return others;
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
    { usage: 'status', describe: 'Tell whether the service is installed and runs', ...serviceStatus },
  ],
});
