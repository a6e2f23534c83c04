import type { Config } from '../config/config.js';
import { quoted, sentence, shellWord, wildcard } from '../lib/text.js';
import { type Plan, plansOf, reportOf } from '../mirror/plan.js';
import type { Conflict, MirrorReport } from '../mirror/record.js';
import type { Failure } from '../state/entry.js';
import type { StateView } from '../state/state.js';
import { locate } from './items.js';
import type { Live } from './live.js';

/** The explanation of a file below the mirror root. Times are in ms since the epoch. */
export interface MirroredFile {
  /** Which mirror writes the file, or why the file is there. */
  readonly rule: string;
  /** The condition, the failure or the conflict that the file waits for. */
  readonly failure?: Failure | undefined;
  /** When the file was last known to be as the peer has it. */
  readonly upToDateAt?: number | undefined;
  readonly next: string;
  readonly nextAt?: number | undefined;
}

/** A mirror: its configuration and its state. */
interface Known {
  readonly plan: Plan;
  readonly report: MirrorReport;
}

/**
 * Explains a file that a mirror writes, a conflict file or an earlier version beside it. It uses
 * the records of the mirrors, and does not look at the disk.
 *
 * @returns undefined if the path is not below the mirror root, or nothing is mirrored
 */
export async function explainMirrored(
  absolute: string,
  config: Config,
  state: StateView,
  live: Live | undefined,
): Promise<MirroredFile | undefined> {
  const { root } = config.mirror;
  const plans = [...plansOf(config.mirror, state)];
  if (plans.length === 0) return undefined;
  const path = (await locate({ folders: [{ path: root }] }, absolute))?.path;
  if (path === undefined) return undefined;
  const running = new Map(live?.parts.mirrors.status().map((report) => [report.name, report]));
  const known = plans.map(
    (plan): Known => ({ plan, report: running.get(plan.name) ?? reportOf(plan, state) }),
  );
  const mirror = known.find(({ report }) => report.path === path);
  if (mirror !== undefined) return ofFile(mirror, live !== undefined);
  for (const each of known) {
    const conflicts = (each.report.conflicts ?? []).filter(({ file }) => file === path);
    if (conflicts.length > 0 || path.startsWith(`${each.report.path}.conflict-`))
      return ofConflictFile(each, conflicts);
    const { length } = each.report.path;
    if (path.startsWith(`${each.report.path}.`) && /^\.\d+$/.test(path.slice(length)))
      return ofEarlierVersion(each);
  }
  const citations = known.find(
    ({ plan, report }) => plan.kind === 'citations' && wildcard(report.path).test(path),
  );
  if (citations !== undefined) return ofFile(citations, live !== undefined);
  return {
    rule: `It is below the mirror root ${root}, but no mirror writes it.`,
    next: 'Nothing: `peersync status` lists the mirrors and their files.',
  };
}

function ofFile(mirror: Known, isRunning: boolean): MirroredFile {
  const { report } = mirror;
  const { nextAt, succeededAt } = report;
  return {
    rule: `The mirror ${quoted(report.name)} writes it: ${sourceOf(mirror)}. ${directionOf(mirror)}`,
    failure: failureOf(report),
    upToDateAt: succeededAt,
    next: nextOf(mirror, isRunning),
    nextAt,
  };
}

function ofConflictFile({ report }: Known, conflicts: readonly Conflict[]): MirroredFile {
  const cells = conflicts.filter(({ pk }) => pk !== '');
  const named = cells.map(({ pk, column }) =>
    column === undefined ? `row ${quoted(pk)}` : `${quoted(column)} of row ${quoted(pk)}`,
  );
  const both = named.length === 0 ? '' : ` Both sides changed ${listOf(named)}.`;
  return {
    rule: `It is a conflict file: a copy of ${report.path} as it was edited, which the mirror ${quoted(report.name)} saved before it wrote what the peer has.${both}`,
    next: 'Nothing: peersync never changes it. Make the change anew in the mirrored file where yours is right, then remove this copy.',
  };
}

const LISTED = 5;

function listOf(names: readonly string[]): string {
  const more = names.length - LISTED;
  return `${names.slice(0, LISTED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function ofEarlierVersion({ report }: Known): MirroredFile {
  return {
    rule: `It is an earlier version of ${report.path}, which the mirror ${quoted(report.name)} keeps (\`versions\`).`,
    next: 'Nothing, until the mirrored file changes: then a newer version takes its place.',
  };
}

/** Returns the source of the mirror in the peer. */
function sourceOf({ plan }: Known): string {
  if (plan.kind === 'citations')
    return `citations of the documents of folder ${quoted(plan.settings.folder)}`;
  const noun = plan.kind === 'table' ? 'the table' : 'the shared object';
  return `${noun} ${quoted(plan.source)} of the peer`;
}

function isTwoWay({ plan }: Known): boolean {
  return plan.kind === 'table' && plan.settings.edit;
}

function directionOf(mirror: Known): string {
  return isTwoWay(mirror)
    ? 'It is two-way: what you change in the file is written to the peer.'
    : 'It goes one way: a file that somebody changed is put back as the peer has it, and the edit is kept beside it.';
}

function failureOf({ condition, conflicts = [], failure }: MirrorReport): Failure | undefined {
  const problem = condition ?? failure;
  if (problem !== undefined) {
    const { code, hint, message } = problem;
    return { code, message: sentence(message), hint: sentence(hint) };
  }
  const files = [...new Set(conflicts.map(({ file }) => file))];
  if (files.length === 0) return undefined;
  return {
    code: 'MIRROR_CONFLICTS',
    message: `An edit was not taken, for the peer has something else there. The file as it was edited is ${listOf(files)}.`,
    hint: 'Look at it, make the change anew where yours is right, and remove that file.',
  };
}

function nextOf(mirror: Known, isRunning: boolean): string {
  const { absentSince, condition, name } = mirror.report;
  if (condition !== undefined)
    return 'The file stays as it is until you accept that, or its cause is gone; the peer is asked again.';
  if (absentSince !== undefined)
    return 'The peer does not have it, as a person accepted; the file comes back when the peer has it again.';
  if (!isRunning)
    return `The peer is asked when the daemon runs (\`peersync run\`), by \`peersync once\` or by \`peersync mirror ${shellWord(name)}\`.`;
  return isTwoWay(mirror)
    ? 'An edit is written to the peer within seconds after you save; the peer is asked again.'
    : 'The peer is asked again, and the file follows it.';
}
