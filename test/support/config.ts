import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Section = Readonly<Record<string, unknown>>;

export interface ConfigParts {
  readonly peer: Section;
  /** Each needs a `name`; the rest is made up where it is left out. */
  readonly folders?: readonly (Section & { readonly name: string })[];
  readonly push?: Section;
  readonly confirm?: Section;
  readonly documents?: Section;
  readonly watch?: Section;
  readonly mirror?: Section;
  readonly status?: Section;
  readonly alerts?: Section;
  readonly fleet?: Section;
}

/**
 * Writes a configuration that is quick: no rate that a test would feel, and a file counts as at
 * rest soon. Folders that are not there are made, `DIRECTORY/NAME` each.
 *
 * @returns the path of the configuration
 */
export function writeConfig(directory: string, parts: ConfigParts): string {
  const folders = (parts.folders ?? [{ name: 'inbox' }]).map((folder) => ({
    path: join(directory, folder.name),
    collection: folder.name,
    url: `https://files.example.org/${folder.name}/`,
    settle: '150ms',
    ...folder,
  }));
  for (const { path } of folders) mkdirSync(path, { recursive: true });
  const config = {
    peer: parts.peer,
    folders,
    state: { dir: join(directory, 'state') },
    push: {
      linger: '20ms',
      requestsPerSecond: 500,
      backoff: { min: '20ms', max: '500ms' },
      ...parts.push,
    },
    confirm: { requestsPerSecond: 2_000, concurrency: 16, maxInterval: '1s', ...parts.confirm },
    // Many daemons run at a time.
    status: { listen: 'off', ...parts.status },
    ...(parts.documents === undefined ? {} : { documents: parts.documents }),
    ...(parts.alerts === undefined ? {} : { alerts: parts.alerts }),
    ...(parts.fleet === undefined ? {} : { fleet: parts.fleet }),
    ...(parts.watch === undefined ? {} : { watch: parts.watch }),
    ...(parts.mirror === undefined ? {} : { mirror: parts.mirror }),
  };
  const path = join(directory, 'config.json');
  // A daemon that reads it anew at this moment finds the one before or this one.
  writeFileSync(`${path}.new`, JSON.stringify(config, undefined, 2));
  renameSync(`${path}.new`, path);
  return path;
}
