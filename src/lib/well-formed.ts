/** The text with every surrogate that stands alone replaced by U+FFFD, as its UTF-8 would have it. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}
