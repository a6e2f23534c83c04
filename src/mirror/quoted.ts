/** Characters of a name that a sentence shows. */
const SHOWN = 100;
/** Names that a sentence lists. */
const LISTED = 5;

/** A name of the peer in a sentence: in quotes, cut if it is long, and without anything that moves a cursor or hides text. */
export function quoted(name: string): string {
  const characters = [...name];
  const shown = characters.slice(0, SHOWN).join('');
  return JSON.stringify(characters.length > SHOWN ? `${shown}…` : shown).replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** Several names in a sentence. */
export function quotedList(names: readonly string[]): string {
  const shown = names.slice(0, LISTED).map(quoted).join(', ');
  return names.length > LISTED ? `${shown} and ${names.length - LISTED} more` : shown;
}
