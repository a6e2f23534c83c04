import { readdir } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Argv } from 'yargs';
import { EXIT, PeersyncError } from '../../lib/errors.js';
import { type Command, print, printJson } from '../context.js';
import { isOurs, remove, runTool, type Site } from './installation.js';
import { assertMayChange, type PlaceOptions, placeOptions, siteOfOptions, systemctl } from './place.js';

interface UninstallOptions extends PlaceOptions {
  readonly dryRun: boolean;
}

/** Takes away what `service install` put in place, and nothing else. */
export const serviceUninstallCommand: Command<UninstallOptions> = {
  command: ['uninstall'],
  describe: 'Stop the service and take away what `service install` wrote',
  builder: (yargs) =>
    placeOptions(yargs)
      .option('dry-run', { type: 'boolean', default: false, describe: 'Only show what would be done' })
      .example('sudo $0 service uninstall', 'The service of the system')
      .example('$0 service uninstall --user', 'Your own') as unknown as Argv<UninstallOptions>,
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
    const did: string[] = [];
    const tell = (what: string): void => {
      did.push(what);
      if (!options.json) print(what);
    };
    const run = async (...words: readonly string[]): Promise<void> => {
      const command = systemctl(site, ...words);
      if (!dryRun) await runTool(command);
      tell(`${dryRun ? 'would run' : 'ran'} ${command.join(' ')}`);
    };
    await run('disable', '--now', site.unit);
    for (const path of await filesOf(site)) {
      if (!dryRun) await remove(path);
      tell(`${dryRun ? 'would remove' : 'removed'} ${path}`);
    }
    await run('daemon-reload');
    if (!dryRun) await runTool(systemctl(site, 'reset-failed', site.unit)).catch(() => {});
    if (options.json) printJson({ unit: site.unit, did });
    else print('The configuration, what peersync remembers, and its user stay.');
    return EXIT.done;
  },
};

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
