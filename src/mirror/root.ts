import { randomBytes } from 'node:crypto';
import { link, mkdir, readdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import PQueue from 'p-queue';
import { writeFileAtomic } from '../lib/atomic.js';
import { systemCode } from '../lib/errors.js';
import type { State } from '../state/state.js';
import { MirrorCondition, MirrorError, onDisk } from './errors.js';
import type { MirrorRequests } from './requests.js';
import { MARKER } from './target-path.js';
import { temporaryOf } from './whole-file.js';

/** The state value with the root that was written last, and its file system. */
const ROOT = 'mirror-root';
/** The state value with the id of this state in markers. */
const OWNER = 'mirror-owner';

/** The content of a marker. `owner` is undefined if it cannot be read. */
interface Marker {
  readonly owner: string | undefined;
  /** A description of the owner, for messages. */
  readonly description: string;
}

export interface MirrorRootParts {
  readonly state: State;
  readonly stateDir: string;
  readonly requests: Pick<MirrorRequests, 'commit'>;
}

/** The mirror that is about to run. */
interface RootUser {
  readonly name: string;
  /** The path of its file below the root, or a template with `{…}`. */
  readonly path: string;
  /** The codes of conditions that a person accepts. */
  readonly accepted: readonly string[];
}

/**
 * The directory below which everything is mirrored. It belongs to one state, because two states
 * would replace each other's files without end.
 *
 * A root without a marker is *taken*: a marker is put there. A root with the marker of another
 * state, or with an unreadable one, is a condition. Accepting it takes the root. A lost state
 * leaves its marker behind, and the new one is another state.
 */
export class MirrorRoot {
  /** Checks run one at a time, so that one marker is written. */
  readonly #checks = new PQueue({ concurrency: 1 });

  constructor(private readonly parts: MirrorRootParts) {}

  /**
   * Checks that the root is there and ours. Makes it if it is missing.
   *
   * @throws MirrorError MIRROR_ROOT_AWAY, MIRROR_ROOT_NESTED; MirrorCondition ROOT_TAKEN
   */
  async check(root: string, user: RootUser): Promise<void> {
    await onDisk(root, () =>
      this.#checks.add(async () => {
        await this.#checkThere(root);
        await this.#checkOurs(root, user);
      }),
    );
  }

  /** Remembers where files were written. It is committed with the record of the mirror. */
  async remember(root: string): Promise<void> {
    const { state } = this.parts;
    const now = { path: root, device: (await stat(root)).dev };
    if (!isDeepStrictEqual(state.meta(ROOT), now)) state.setMeta(ROOT, now);
  }

  /**
   * Refuses to write into an empty mount point: files would fill the disk below it, and an old
   * file would look like an edit once the right disk is back. The root counts as unmounted if it is
   * empty, and on another file system than at the last write.
   */
  async #checkThere(root: string): Promise<void> {
    const known = this.parts.state.meta(ROOT) as
      | { readonly path?: unknown; readonly device?: unknown }
      | undefined;
    await mkdir(root, { recursive: true, mode: 0o755 });
    if (known?.path !== root || known.device === (await stat(root)).dev) return;
    if ((await readdir(root)).length === 0)
      throw new MirrorError('MIRROR_ROOT_AWAY', { what: root });
  }

  async #checkOurs(root: string, { name, path, accepted }: RootUser): Promise<void> {
    const owner = await this.#owner();
    const top = await realpath(root);
    for (const directory of [...above(top), ...between(top, path)]) {
      const marker = await markerIn(directory);
      if (marker !== undefined && marker.owner !== owner) {
        const detail = `${directory}, ${marker.description}`;
        throw new MirrorError('MIRROR_ROOT_NESTED', { what: root, detail });
      }
    }
    const marker = (await markerIn(top)) ?? (await this.#take(top, owner));
    if (marker === undefined || marker.owner === owner) return;
    if (!accepted.includes('ROOT_TAKEN'))
      throw new MirrorCondition('ROOT_TAKEN', name, root, marker.description);
    await writeFileAtomic(join(top, MARKER), this.#text(owner), {
      mode: 0o644,
      temporary: temporaryIn(top, owner),
    });
  }

  /** Returns the id of this state. It is on disk before a marker has it. */
  async #owner(): Promise<string> {
    const { state, requests } = this.parts;
    const known = state.meta(OWNER);
    if (typeof known === 'string') return known;
    const owner = randomBytes(12).toString('hex');
    state.setMeta(OWNER, owner);
    await requests.commit();
    return owner;
  }

  /** Puts the marker into a root without one. Returns the marker of a state that was faster. */
  async #take(top: string, owner: string): Promise<Marker | undefined> {
    const temporary = temporaryIn(top, owner);
    const path = join(top, MARKER);
    const text = this.#text(owner);
    await writeFileAtomic(temporary, text, { mode: 0o644, temporary: `${temporary}.tmp` });
    try {
      await link(temporary, path);
    } catch (error) {
      if (systemCode(error) === 'EEXIST') return await markerIn(top);
      // The file system has no hard links.
      await writeFileAtomic(path, text, { mode: 0o644, temporary: `${temporary}.tmp` });
    } finally {
      await rm(temporary, { force: true });
    }
    return undefined;
  }

  #text(owner: string): string {
    const about = 'peersync mirrors into this directory, from this state alone.';
    return `${JSON.stringify({ about, owner, state: this.parts.stateDir, host: hostname() }, undefined, 2)}\n`;
  }
}

function temporaryIn(directory: string, owner: string): string {
  return temporaryOf(join(directory, MARKER), `marker of ${owner}`);
}

/** Returns all directories above a directory. */
function above(directory: string): readonly string[] {
  const parent = dirname(directory);
  return parent === directory ? [] : [parent, ...above(parent)];
}

/** Returns the directories between the root and a path, up to the first `{…}`. */
function between(root: string, path: string): readonly string[] {
  const known = path.replace(/\{.*/s, '').split('/').slice(0, -1);
  return known.map((_, i) => join(root, ...known.slice(0, i + 1)));
}

async function markerIn(directory: string): Promise<Marker | undefined> {
  const path = join(directory, MARKER);
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    const code = systemCode(error) ?? '';
    if (['ENOENT', 'ENOTDIR'].includes(code)) return undefined;
    if (['EACCES', 'EPERM', 'EISDIR', 'ELOOP'].includes(code)) return '';
    throw error;
  });
  return text === undefined ? undefined : parsed(text, path);
}

function parsed(text: string, path: string): Marker {
  try {
    const { owner, state, host }: Record<string, unknown> = JSON.parse(text);
    if (typeof owner === 'string' && owner !== '')
      return { owner, description: `of the state in ${String(state)} on the host ${String(host)}` };
  } catch {
    // Handled below like a marker with another content.
  }
  return { owner: undefined, description: `whose marker ${path} cannot be read` };
}
