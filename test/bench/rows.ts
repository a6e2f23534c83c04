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

/** A row with a promise: no more than a limit. */
export function below(name: string, measured: number, limit: number, unit: string): BenchRow {
  const promise = { text: `at most ${limit.toPrecision(3)} ${unit}`, kept: measured <= limit };
  return { ...row(name, measured, limit, unit), promise };
}
