/**
 * Compares by code point, which is the order of the bytes in UTF-8. JavaScript's `<` compares UTF-16 units and puts
 * what is beyond U+FFFF before U+E000.
 *
 * @returns less than, equal to or more than 0, as `sort` wants it
 */
export function compareByCodePoint(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}
