import { join } from 'node:path';
import { sentence } from '../lib/text.js';
import { durationText, formatBytes } from '../lib/units.js';
import type { Conflict, MirrorReport } from '../mirror/record.js';
import { columns, counted, safe } from './text.js';

/** How many cells in conflict a status names for each file. */
const NAMED_CELLS = 5;

/**
 * What a run of one mirror came to, for a person.
 *
 * @param root of the mirrors, for what a person has to find on disk
 */
export function runLines(report: MirrorReport, root: string): string[] {
  const { name, alarm, failure, notes = [], conflicts = [] } = report;
  const lines: string[] = [];
  if (alarm !== undefined) lines.push(`ALARM: ${sentence(alarm.message)} ${sentence(alarm.hint)}`);
  else if (failure !== undefined)
    lines.push(`failed: ${sentence(failure.message)} ${sentence(failure.hint)}`);
  else if (!isPattern(report)) lines.push(outcomeOf(report));
  lines.push(...notes);
  for (const file of filesOf(conflicts)) {
    const cells = conflicts.filter((conflict) => conflict.file === file).length;
    lines.push(
      `${counted(cells, 'cell')} changed on both sides: the peer's value was kept, yours is in ${join(root, file)}`,
    );
  }
  const [first = 'has not run yet.', ...rest] = lines;
  return [`${name}: ${first}`, ...rest.map((line) => `  ${line}`)].map(safe);
}

function outcomeOf({ kind, path, changed, rows, bytes, absentSince, isOver }: MirrorReport): string {
  if (absentSince !== undefined || isOver)
    return `${path} ${changed ? 'removed' : 'is not there'}, until the peer has it again`;
  const what = [
    rows === undefined ? undefined : counted(rows, kind === 'citations' ? 'document' : 'row'),
    bytes === undefined ? undefined : formatBytes(bytes),
  ].filter((part) => part !== undefined);
  return `${path} ${changed ? 'written' : 'unchanged'}${what.length === 0 ? '' : ` (${what.join(', ')})`}`;
}

/** All mirrors for `status`: a line for each, and below it what a person has to know or do. */
export function mirrorLines(mirrors: readonly MirrorReport[], root: string, now: number): string[] {
  if (mirrors.length === 0) return [];
  const ago = (at: number | undefined) => (at === undefined ? 'never' : `${durationText(now - at)} ago`);
  const rows: (string | number)[][] = [
    ['mirror', 'last success', 'last change', 'rows', 'size', 'next run', `file, below ${safe(root)}`],
  ];
  for (const mirror of mirrors) {
    const { name, path, succeededAt, changedAt, rows: count, bytes, nextAt, running } = mirror;
    const next = nextAt === undefined ? '' : nextAt <= now ? 'now' : `in ${durationText(nextAt - now)}`;
    rows.push([
      safe(name),
      ago(succeededAt),
      ago(changedAt),
      count ?? '',
      bytes === undefined ? '' : formatBytes(bytes),
      running ? 'now' : next,
      safe(path),
    ]);
  }
  const [head = '', ...lines] = columns(rows);
  const told = mirrors.flatMap((mirror, i) => [lines[i] ?? '', ...noteworthy(mirror, root, now)]);
  return ['', head, ...told];
}

function noteworthy(mirror: MirrorReport, root: string, now: number): string[] {
  const { alarm, failure, absentSince, conflicts = [], notes = [] } = mirror;
  const lines: string[] = [];
  if (alarm !== undefined)
    lines.push(
      `ALARM for ${durationText(now - alarm.since)}: ${sentence(alarm.message)}`,
      sentence(alarm.hint),
    );
  if (failure !== undefined)
    lines.push(
      `fails for ${durationText(now - failure.since)}: ${sentence(failure.message)} ${sentence(failure.hint)}`,
    );
  if (absentSince !== undefined)
    lines.push(
      `The peer does not have it, as was accepted ${durationText(now - absentSince)} ago; the file comes back when the peer has it again.`,
    );
  for (const file of filesOf(conflicts)) {
    const cells = conflicts.filter((conflict) => conflict.file === file);
    const named = cells
      .slice(0, NAMED_CELLS)
      .map(({ pk, column }) => `${pk}${column === undefined ? '' : ` ${column}`}`);
    const more = cells.length > NAMED_CELLS ? ` and ${cells.length - NAMED_CELLS} more` : '';
    lines.push(
      `changed on both sides: ${named.join(', ')}${more}; the peer's value was kept, yours is in ${join(root, file)} (remove it when you are done)`,
    );
  }
  lines.push(...notes);
  return lines.map((line) => `  ${safe(line)}`);
}

/** Whether it only finds tables, each of which is a mirror by itself. */
function isPattern({ kind, table }: MirrorReport): boolean {
  return kind === 'table' && table === undefined;
}

function filesOf(conflicts: readonly Conflict[]): string[] {
  return [...new Set(conflicts.map(({ file }) => file))];
}
