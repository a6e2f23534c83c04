/** A text as a sentence of its own: with a full stop, unless it ends like one. */
export function sentence(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
