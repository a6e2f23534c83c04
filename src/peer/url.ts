/**
 * One spelling of a URL for comparing: lower-case scheme and host, no default port, no fragment, and one way to escape.
 * Peers give URLs back escaped more or less than they got them.
 */
export function comparableUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) return text.trim();
  const authority = `${url.protocol}//${url.username}${url.password ? `:${url.password}` : ''}@${url.host}`;
  return `${authority}${escapedOnce(url.pathname, '/')}${escapedOnce(url.search, '?&=+')}`;
}

export function isSameUrl(a: string, b: string): boolean {
  return a === b || comparableUrl(a) === comparableUrl(b);
}

/** Escapes all but letters, digits, `-._~` and `kept`; an escape of something else stays one. */
function escapedOnce(text: string, kept: string): string {
  return text.replace(/%[0-9a-f]{2}|[^A-Za-z0-9\-._~]/gi, (part) => {
    if (kept.includes(part)) return part;
    if (part.length === 1) return part === '%' ? '%25' : percent(part);
    const character = String.fromCharCode(Number.parseInt(part.slice(1), 16));
    return /[A-Za-z0-9\-._~]/.test(character) ? character : part.toUpperCase();
  });
}

function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}
