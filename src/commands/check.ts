import { z } from 'zod';
import { define } from '../cli/command.js';
import { onThisTerminal } from '../cli/consent.js';
import { prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { labelled, type Style } from '../cli/terminal.js';
import { safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config } from '../config/config.js';
import { EXIT, type ExitCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { checkFleet, checkVisible, noFleet } from './check-fleet.js';
import { checkMachine } from './check-machine.js';
import { checkAddresses, checkPeer } from './check-peer.js';
import type { Finding } from './finding.js';

const CANARY_TIMEOUT = '2m';

const findingShape = z.object({
  check: z.string(),
  ok: z.boolean(),
  message: z.string(),
  hint: z.string().optional(),
});

/**
 * Looks at everything that has to be right before the daemon can do its work; changes nothing, but
 * for canaries.
 */
export const checkCommand = define({
  output: findingShape,
  outputWith: {
    '--canary': z.union([
      findingShape,
      z.object({
        canary: z
          .object({
            dialect: z.string(),
            holdMs: z.number(),
            timeToVisibleMs: z.number().optional(),
            dropped: z.array(z.string()),
            remaining: z
              .array(z.string())
              .describe('The URLs of the canaries that stay in the peer.'),
          })
          .nullable(),
      }),
    ]),
  },
  options: {
    worker: option.flag('Check what `peersync worker` needs on this machine, and nothing else'),
    canary: option.flag('Push tiny documents, and tell what works on this peer'),
    url: option.value(
      "With --canary: below which URL they go; peersync-canary/ below the first folder's unless given",
    ),
    yes: option.flag('With --canary: push without asking'),
    timeout: option.value(
      `With --canary: how long to wait for them (${CANARY_TIMEOUT} unless given)`,
    ),
  },
  examples: [
    ['$0 check', 'Before the first run, or when something is odd'],
    ['$0 check --canary', 'Before the first run with a peer of your own'],
    ['$0 check --worker', 'On another machine, before its first `peersync worker`'],
  ],
  run: async (options) => {
    const { url, yes } = options;
    if (!options.canary && (url !== undefined || yes || options.timeout !== undefined))
      throw new UsageError('--url, --yes and --timeout are for --canary.');
    if (options.canary && options.worker)
      throw new UsageError('--canary and --worker exclude each other.');
    const timeoutMs = option.duration('--timeout', options.timeout ?? CANARY_TIMEOUT);
    const { config, log, path } = await prepare(options);
    const findings: Finding[] = [];
    const report = (finding: Finding) => {
      findings.push(finding);
      const { check, hint, message } = finding;
      const { label, style } = labelOf(finding);
      answer(options, finding, () => [
        labelled(style, `${label.padEnd(6)}  ${check}: ${safe(message)}`),
        ...(hint ? [`        ${safe(hint)}`] : []),
      ]);
    };
    report({ check: 'configuration', ok: true, message: `${path} is valid` });
    if (options.worker) {
      await checkWorker(config, log, report);
      return exitCodeOf(findings);
    }
    for await (const finding of checkMachine(config)) report(finding);
    for (const finding of (await documentFindings(config)).findings) report(finding);
    const isUsable = await checkPeer(config, log, report);
    if (config.fleet !== undefined)
      for await (const finding of checkFleet(config.fleet, log)) report(finding);
    // Canaries give a better answer.
    if (!options.canary) for await (const finding of checkAddresses(config)) report(finding);
    if (options.canary) {
      const [{ checkCanary }, { canaryText }] = await Promise.all([
        import('./canary.js'),
        import('./canary-report.js'),
      ]);
      const how = { url, yes, timeoutMs };
      const found = isUsable ? await checkCanary(config, how, log, onThisTerminal()) : undefined;
      for (const finding of found?.findings ?? []) report(finding);
      answer(options, { canary: found?.canary ?? null }, () =>
        found ? canaryText(found.canary) : ['Nothing was pushed, because the peer failed.'],
      );
    }
    return exitCodeOf(findings);
  },
});

function exitCodeOf(findings: readonly Finding[]): ExitCode {
  const faults = findings.filter((finding) => !finding.ok);
  if (faults.length === 0) return EXIT.done;
  return faults.find((finding) => finding.exitCode !== undefined)?.exitCode ?? EXIT.failure;
}

/**
 * Checks what a worker needs: the folders, programs, Redis, and the peer if it pushes.
 *
 * @throws PeersyncError NO_FLEET if the configuration names no Redis
 */
async function checkWorker(
  config: Config,
  log: Logger,
  report: (finding: Finding) => void,
): Promise<void> {
  const { fleet } = config;
  if (fleet === undefined) throw noFleet();
  for await (const finding of checkVisible(config)) report(finding);
  const { findings, programs } = await documentFindings(config);
  for (const finding of findings) report(finding);
  const { folders, peer } = config;
  const here = { folders, peerUrl: peer.url, programs };
  for await (const finding of checkFleet(fleet, log, here)) report(finding);
  if (fleet.share.includes('push')) await checkPeer(config, log, report);
}

async function documentFindings({ documents }: Config) {
  const [{ ProgramFinder }, { checkDocuments }] = await Promise.all([
    import('../content/helpers/finder.js'),
    import('./check-documents.js'),
  ]);
  const finder = new ProgramFinder(() => documents);
  await finder.refresh();
  return { findings: [...checkDocuments(finder)], programs: finder.current };
}

/** Returns the label of a finding: a finding that is right and has a hint is a note. */
function labelOf({ hint, ok }: Finding): { readonly label: string; readonly style: Style } {
  if (!ok) return { label: 'FAILED', style: 'red' };
  if (hint !== undefined) return { label: 'note', style: 'yellow' };
  return { label: 'ok', style: 'green' };
}
