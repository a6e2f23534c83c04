import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The directory of the package, two levels above this file in the source and in the build. */
export const PACKAGE_ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The version in package.json. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version;

/** What a build was made of; empty where it was made outside of the repository. */
export interface Build {
  /** Of the repository, shortened. */
  readonly commit?: string;
  /** Of that commit, as `2026-11-21`: the same source is the same build. */
  readonly date?: string;
  /** Whether the source was changed since that commit. */
  readonly modified?: boolean;
}

/** What the build noted of itself; nothing where the source runs without one. */
export function readBuild(): Build {
  try {
    return JSON.parse(readFileSync(new URL('../build.json', import.meta.url), 'utf8')) as Build;
  } catch {
    return {};
  }
}

/** Version, build and Node, as `--version` shows them: `peersync 0.1.0 (a8e24bf, 2026-11-21, Node 20.20.2)`. */
export function versionText({ commit, date, modified }: Build = readBuild()): string {
  const source = commit === undefined ? undefined : `${commit}${modified === true ? ' modified' : ''}`;
  const parts = [source, date, `Node ${process.versions.node}`].filter((part) => part !== undefined);
  return `peersync ${VERSION} (${parts.join(', ')})`;
}
