/**
 * Returns the edit distance of two words (optimal string alignment): the number of characters to
 * insert, remove, replace, or swap with their neighbour. The count ends early beyond the limit.
 *
 * @param limit the largest distance of interest
 * @returns at most `limit + 1`
 */
export function editDistance(a: readonly string[], b: readonly string[], limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let twoAbove: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      const replaced = (above[j - 1] ?? 0) + (isSame ? 0 : 1);
      let least = Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, (twoAbove[j - 2] ?? 0) + 1);
      row.push(least);
    }
    if (Math.min(...row) > limit) return limit + 1;
    twoAbove = above;
    above = row;
  }
  return Math.min(above[b.length] ?? 0, limit + 1);
}

/** The characters that are compared. Cutting keeps a long text cheap. */
const COMPARED_CHARS = 40;

/** Returns the word that was probably meant by `given`; undefined if none is similar enough. */
export function nearest(given: string, words: readonly string[]): string | undefined {
  const meant = comparable(given);
  const limit = Math.max(1, Math.floor(meant.length / 3));
  return words
    .map((word) => ({ word, distance: editDistance(meant, comparable(word), limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)[0]?.word;
}

/** Returns the characters of a word for a comparison that ignores case. */
function comparable(word: string): readonly string[] {
  return [...word.toLowerCase().slice(0, COMPARED_CHARS)];
}
