import type { Entry } from '../../state/entry.js';
import type { Files } from './files.js';
import type { Why } from './why.js';

/** The address of the explanation of a path. */
export function whyHref(path: string): string {
  return `#why=${encodeURIComponent(path)}`;
}

/** The address of the list of the files that have a status, of all folders or of one. */
export function filesHref(status: Entry['status'], folder?: string): string {
  return folder === undefined ? `#files=${status}` : `#files=${status}&folder=${encodeURIComponent(folder)}`;
}

/** Shows what the fragment of the address asks for: `#why=PATH`, `#files=STATUS&folder=NAME`. */
export function onRoute({ files, why }: { readonly files: Files; readonly why: Why }): void {
  const go = () => {
    const asked = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
    const path = asked.get('why');
    const status = asked.get('files');
    if (path !== null && path !== '') void why.explain(path);
    if (status !== null) files.choose(status, asked.get('folder') ?? '');
  };
  addEventListener('hashchange', go);
  go();
}
