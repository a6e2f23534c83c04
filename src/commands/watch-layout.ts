import { displayWidth, fitted } from './display-width.js';
import { type StyledLine, styled } from './styled.js';

/** A part of the view that can be shortened. */
export interface Section {
  /** What matters most has the lowest; it gets its lines first. */
  readonly rank: number;
  readonly lines: readonly StyledLine[];
  /** So many lines are worth more than anything of the parts with a higher rank. */
  readonly least: number;
  /** Whether nobody misses what is cut away, so that it is not counted. */
  readonly open?: boolean;
}

/** Between two columns of a table. */
const GAP = '  ';

/** Puts parts under each other in at most so many rows: those that matter less are shortened, or left out. */
export function laidOut(parts: readonly Section[], rows: number): StyledLine[] {
  const sections = parts.filter(({ lines }) => lines.length > 0);
  // Room between the parts is worth less than anything that would be cut away for it.
  const wanted = sections.map(({ least, lines, open }) => (open === true ? least : lines.length) + 1);
  const hasGaps = wanted.reduce((sum, n) => sum + n, -1) <= rows;
  const granted = new Map<Section, number>();
  let left = rows;
  const byRank = [...sections].sort((a, b) => a.rank - b.rank);
  const grant = (section: Section, count: number) => {
    const had = granted.get(section) ?? 0;
    const gap = had === 0 && hasGaps && granted.size > 0 ? 1 : 0;
    const more = Math.min(count - had, left - gap);
    if (more <= 0) return;
    granted.set(section, had + more);
    left -= more + gap;
  };
  for (const section of byRank) grant(section, Math.min(section.least, section.lines.length));
  for (const section of byRank) grant(section, section.lines.length);
  const result: StyledLine[] = [];
  for (const section of sections) {
    const count = granted.get(section) ?? 0;
    if (count === 0) continue;
    if (hasGaps && result.length > 0) result.push([]);
    result.push(...shortened(section, count));
  }
  return result;
}

function shortened({ lines, open }: Section, count: number): readonly StyledLine[] {
  if (lines.length <= count) return lines;
  if (count < 3 || open === true) return lines.slice(0, count);
  return [...lines.slice(0, count - 1), [styled('dim', `  and ${lines.length - count + 1} more`)]];
}

/** A column of a table. */
export interface Column {
  readonly head: string;
  readonly align?: 'left' | 'right';
  /** The first to go where there is no room has the highest; without one it stays. */
  readonly rank?: number;
}

/** Rows under a head, in at most so many columns of the terminal where that can be had by leaving columns out. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
): StyledLine[] {
  const all = columns.map((column, i) => {
    const cells = [column.head, ...rows.map((row) => row[i] ?? '')];
    return { ...column, cells, width: Math.max(...cells.map(displayWidth)) };
  });
  const shown = new Set(all);
  const byRank = all.filter(({ rank }) => rank !== undefined).sort((a, b) => (b.rank ?? 0) - (a.rank ?? 0));
  for (const column of byRank) {
    const needed = [...shown].reduce((sum, each) => sum + each.width + GAP.length, -GAP.length);
    if (needed <= width) break;
    shown.delete(column);
  }
  const line = (row: number) =>
    [...shown]
      .map(({ align, cells, width }) => fitted(cells[row] ?? '', width, align))
      .join(GAP)
      .trimEnd();
  return [[styled('bold', line(0))], ...rows.map((_, i) => [line(i + 1)])];
}
