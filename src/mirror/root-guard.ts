import { readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from '../lib/errors.js';
import { MirrorError } from './errors.js';
import type { MirrorTools } from './parts.js';

const META = 'mirror-root';

/**
 * Knows the file system that the mirror root is on, so that nothing is written into an empty mount point: files would fill the
 * disk below it, and when the right one is back an old file that is edited would look like a person's edit.
 *
 * A root counts as *away* while it is empty, or not there at all, on another file system than when something was last written
 * to it. Any file in it makes it the root again.
 */
export class RootGuard {
  /** The root may become another one. */
  readonly #tools: Pick<MirrorTools, 'root' | 'state'>;

  constructor(tools: Pick<MirrorTools, 'root' | 'state'>) {
    this.#tools = tools;
  }

  /**
   * To be asked before anything is written.
   *
   * @throws MirrorError MIRROR_ROOT_AWAY
   */
  async check(): Promise<void> {
    const { root, state } = this.#tools;
    const known = state.meta(META);
    if (!isKnown(known) || known.path !== root) return;
    if (known.device !== (await deviceOf(root)) && (await isEmpty(root)))
      throw new MirrorError('MIRROR_ROOT_AWAY', { what: root, detail: '' });
  }

  /** Remembers where the root is; to be committed with the record of what was written. */
  async wasWritten(): Promise<void> {
    const { root, state } = this.#tools;
    const device = await deviceOf(root);
    const known = state.meta(META);
    if (isKnown(known) && known.path === root && known.device === device) return;
    state.setMeta(META, { path: root, device });
  }
}

/** Of the directory, or of the one above it that exists. */
async function deviceOf(directory: string): Promise<number> {
  try {
    return (await stat(directory)).dev;
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || dirname(directory) === directory) throw error;
    return await deviceOf(dirname(directory));
  }
}

async function isEmpty(directory: string): Promise<boolean> {
  try {
    return (await readdir(directory)).length === 0;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return true;
    throw error;
  }
}

function isKnown(kept: unknown): kept is { readonly path: string; readonly device: number } {
  return typeof kept === 'object' && kept !== null && 'path' in kept && 'device' in kept;
}
