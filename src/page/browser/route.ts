import type { Entry } from '../../state/entry.js';

/** The address of the explanation of a path. */
export function whyHref(path: string): string {
  return `#why=${encodeURIComponent(path)}`;
}

/** The address of the list of the files that have a status, of all folders or of one. */
export function filesHref(status: Entry['status'], folder?: string): string {
  return folder === undefined ? `#files=${status}` : `#files=${status}&folder=${encodeURIComponent(folder)}`;
}
