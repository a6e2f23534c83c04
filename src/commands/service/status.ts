import { EXIT, systemCode } from '../../lib/errors.js';
import { type Command, moduleOf, print, printJson, UsageError } from '../context.js';
import { HEADS } from '../heads.js';
import { serviceInstallCommand } from './install.js';
import { isOurs, runTool } from './installation.js';
import {
  assertSystemd,
  lookWords,
  type PlaceOptions,
  placeOptions,
  siteOfOptions,
  systemctl,
} from './place.js';
import { serviceUninstallCommand } from './uninstall.js';

/** How the service stands, as systemd knows it. */
export const serviceStatusCommand: Command<PlaceOptions> = {
  command: ['status'],
  describe: 'Tell whether the service is installed and runs',
  builder: (yargs) =>
    placeOptions(yargs)
      .example('$0 service status', 'The service of the system')
      .example('$0 service status --user --name docs', 'One of your own'),
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
};

/** `NAME=value` lines. */
function properties(text: string): Readonly<Record<string, string>> {
  const pairs = text.split('\n').flatMap((line): (readonly [string, string])[] => {
    const at = line.indexOf('=');
    return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
  });
  return Object.fromEntries(pairs);
}

const NAME_ONE = 'Name what to do: `service install`, `uninstall` or `status`.';

/** The daemon as a service of systemd. */
export const serviceCommand: Command<object> = {
  ...HEADS.service,
  builder: (yargs) =>
    yargs
      .command(moduleOf(serviceInstallCommand))
      .command(moduleOf(serviceUninstallCommand))
      .command(moduleOf(serviceStatusCommand))
      .demandCommand(1, NAME_ONE)
      .recommendCommands(),
  run: async () => {
    throw new UsageError(NAME_ONE);
  },
};
