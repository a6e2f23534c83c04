/** The word of `words` that was probably meant by `given`: a typing error or two away. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = plain(given);
  const limit = Math.max(1, Math.floor(meant.length / 3));
  return words
    .map((word) => ({ word, distance: editDistance(meant, plain(word)) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)[0]?.word;
}

/** `maxitems` is as near to `maxItems` as can be; a whole text in place of a key costs no time. */
function plain(word: string): string {
  return word.toLowerCase().slice(0, 40);
}

/** How many characters must be put in, left out, replaced or swapped with their neighbour. */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped ? at(i - 2, j - 2) + 1 : replaced),
      );
    }
  }
  return at(a.length, b.length);
}
