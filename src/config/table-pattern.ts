/** Whether the `table`, or the `data`, of a mirror stands for every name that it matches: it holds `*` or `?`. */
export function isTablePattern(text: string): boolean {
  return /[*?]/.test(text);
}

/** What a pattern takes: `*` for any characters, also none, and `?` for one; everything else for itself. */
export function tablePattern(pattern: string): RegExp {
  const source = pattern
    .replace(/[\\^$.+()[\]{}|]/g, (character) => `\\${character}`)
    .replace(/\*+/g, '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'su');
}
