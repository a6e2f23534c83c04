import { isSameUrl } from './url.js';

/**
 * A URL as it is sent: YaCy leaves the case of a host as it is and then takes it for another, and echoes what is not
 * escaped in a way that breaks its answers.
 */
export function sentUrl(url: string): string {
  if (!URL.canParse(url)) return url;
  const parsed = new URL(url);
  parsed.hash = '';
  return parsed.href;
}

/** Whether YaCy made `shown` of `sent`: it collapses slashes and gives files unescaped. */
export function isNormalisedFrom(shown: string, sent: string): boolean {
  return isSameUrl(collapsed(shown), collapsed(sent));
}

function collapsed(url: string): string {
  const [, origin = '', rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/[^/]*)(.*)$/is.exec(url) ?? [];
  const [path = '', ...query] = rest.split('?');
  return [`${origin}${path.replace(/\/{2,}/g, '/')}`, ...query].join('?');
}
