/** One line of the bench's table: a figure, what it is laid beside, and their ratio. */
export interface BenchRow {
  readonly name: string;
  readonly measured: number;
  readonly baseline: number;
  /** measured/baseline or its inverse, whichever `reads` says. */
  readonly ratio: number;
  readonly unit: string;
  /** What is promised of the ratio or the figure, and whether it was kept. */
  readonly promise?: { readonly text: string; readonly kept: boolean };
}
