/**
 * Returns whether an earlier run found the embedded peer at this URL; undefined if that is not
 * recorded.
 *
 * @param kept the record of the earlier run
 */
export function rememberedEmbedded(kept: unknown, url: string): boolean | undefined {
  if (!isAbout(kept, url)) return undefined;
  return 'isEmbedded' in kept && typeof kept.isEmbedded === 'boolean' ? kept.isEmbedded : undefined;
}

/**
 * Returns the name of the dialect that an earlier run found at this URL; undefined if that is not
 * recorded.
 *
 * @param kept the record of the earlier run
 */
export function rememberedDialect(kept: unknown, url: string): string | undefined {
  if (!isAbout(kept, url)) return undefined;
  return 'dialect' in kept && typeof kept.dialect === 'string' ? kept.dialect : undefined;
}

/** Whether a record is about the peer at this URL. */
function isAbout(kept: unknown, url: string): kept is { readonly url: string } {
  return typeof kept === 'object' && kept !== null && 'url' in kept && kept.url === url;
}
