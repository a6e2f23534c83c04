import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { Config } from '../config/config.js';
import { normaliseBase } from '../config/url.js';
import { systemClock } from '../lib/clock.js';
import type { Logger } from '../lib/logger.js';
import { durationText } from '../lib/units.js';
import { canary } from './canary.js';
import { type CanaryPlan, canaryPlan } from './canary-documents.js';
import type { CanaryReport } from './canary-report.js';
import { type Asked, consent } from './consent.js';
import { UsageError } from './context.js';
import { withPeer } from './peer-access.js';
import { columns, counted, safe } from './text.js';

export interface CanaryOptions {
  readonly url: string | undefined;
  readonly yes: boolean;
  readonly timeoutMs: number;
}

/**
 * Pushes canaries to the configured peer, once somebody agreed: the peer keeps them.
 *
 * @throws UsageError for a URL that is none, or that is the document of a file of a folder
 * @throws PeersyncError NOT_CONFIRMED, STOPPED, and what finding out the dialect throws
 */
export async function checkCanary(
  config: Config,
  { url, yes, timeoutMs }: CanaryOptions,
  log: Logger,
  asked: Asked,
): Promise<CanaryReport> {
  const clock = systemClock;
  const plans = canaryPlan(baseOf(url, config), config.folders, clock.now());
  await refuseFiles(plans, config);
  const { hold, maxInterval } = config.confirm;
  return withPeer(config, log, async (client, signal) => {
    if (!yes) {
      if (asked.isTerminal) asked.output.write(questionText(plans));
      await consent('Push them? Type "yes": ', 'yes', asked, signal, 'Nothing was pushed');
    }
    return canary(client, plans, { timeoutMs, hold, maxInterval }, { clock, signal });
  });
}

/** Below which URL the canaries go. */
function baseOf(url: string | undefined, { folders }: Config): string {
  if (url === undefined) return `${folders[0]?.url ?? ''}peersync-canary/`;
  const base = normaliseBase(url);
  if (base !== undefined) return base;
  throw new UsageError(
    `--url: received "${url}".`,
    'Give an http, https, ftp or file URL without credentials, query and fragment, such as https://files.example.org/canary/.',
  );
}

/** A canary must not take the place of a file's document. */
async function refuseFiles(plans: readonly CanaryPlan[], { folders }: Config): Promise<void> {
  for (const { url } of plans) {
    for (const folder of folders) {
      if (!url.startsWith(folder.url)) continue;
      const file = join(folder.path, decodeURIComponent(url.slice(folder.url.length)));
      const exists = await access(file).then(
        () => true,
        () => false,
      );
      if (exists)
        throw new UsageError(
          `The canary ${url} would replace the document of ${file}.`,
          'Give another --url.',
        );
    }
  }
}

function questionText(plans: readonly CanaryPlan[]): string {
  const urls = plans.map(({ url }) => `  ${safe(url)}\n`).join('');
  return `${counted(plans.length, 'tiny document')} will stay in the index, for a peer's interface cannot remove any:\n${urls}`;
}

/** The report for a person, line by line. */
export function canaryText(report: CanaryReport): string[] {
  const { rows, timeToVisibleMs } = report;
  const shown = rows.map(({ check, status, message }) => [WORDS[status], check, safe(message)]);
  const hints = new Set(rows.flatMap(({ hint }) => (hint === undefined ? [] : [safe(hint)])));
  const visible =
    timeToVisibleMs === undefined ? 'not known' : `${durationText(timeToVisibleMs)} after the push`;
  return [
    ...columns([...shown, ['', 'time to visible', visible]]),
    ...[...hints].map((hint) => `  ${hint}`),
    'What the daemon will do:',
    ...daemonText(report).map((line) => `  ${line}`),
  ];
}

const WORDS = { works: 'ok', fails: 'TROUBLE', 'not tried': '-' } as const;

function daemonText({ dialect, holdMs, takesBinary, dropped }: CanaryReport): string[] {
  return [
    `It speaks the dialect ${dialect}.`,
    holdMs === 0
      ? 'It confirms a file as soon as the peer shows it.'
      : `It confirms a file when the peer still shows it ${durationText(holdMs)} after its push.`,
    takesBinary
      ? 'It pushes all files, those that are no text as they are.'
      : 'It pushes text files; those that are no text are passed over.',
    ...dropped.map((folder) => `Files of the folder ${safe(folder)} would end in quarantine.`),
  ];
}
