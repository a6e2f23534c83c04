/** One line of the table. */
export interface BenchRow {
  readonly name: string;
  readonly measured: number;
  readonly baseline: number;
  readonly ratio: number;
  readonly unit: string;
  readonly promise?: { readonly text: string; readonly kept: boolean };
}

export function row(name: string, measured: number, baseline: number, unit: string): BenchRow {
  return { name, measured, baseline, ratio: measured / baseline, unit };
}

/** The row with a promise. */
export function promised(result: BenchRow, text: string, kept: boolean): BenchRow {
  return { ...result, promise: { text, kept } };
}

/** A row with a promise: no more than a limit. */
export function below(name: string, measured: number, limit: number, unit: string): BenchRow {
  return promised(
    row(name, measured, limit, unit),
    `at most ${limit.toPrecision(3)} ${unit}`,
    measured <= limit,
  );
}
