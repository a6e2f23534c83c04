/** How far the looks at one folder have got: every file, directory or record that was met is a step. */
export class Steps {
  #taken = 0;

  /** How many so far. */
  get taken(): number {
    return this.#taken;
  }

  take(): void {
    this.#taken += 1;
  }
}
