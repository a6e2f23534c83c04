import { isDeepStrictEqual } from 'node:util';
import { changedKeys } from './changes.js';
import type { Config } from './config.js';
import { contradictions } from './contradictions.js';
import { ConfigError } from './errors.js';
import { problemLine } from './problems.js';

/** What a running daemon makes of a configuration that was read anew. */
export interface Reloaded {
  /** What holds from now on: the new configuration, but for what needs a restart. */
  readonly config: Config;
  /** The keys whose new values wait for a restart. */
  readonly restart: readonly string[];
}

/**
 * What a daemon that runs with `running` does when its file says `wanted`.
 *
 * The peer and the directory of the state stay as they are until a restart. The credentials and the certificates to trust
 * change at once, unless they are for another peer: nobody is ever sent, or trusted with, what was meant for somebody else.
 *
 * @throws ConfigError CONFIG_INVALID when what stays gets in the way of what changes
 */
export async function reloaded(running: Config, wanted: Config): Promise<Reloaded> {
  const { auth: _, ...rest } = running.peer;
  const { auth, tls } = running.peer.url === wanted.peer.url ? wanted.peer : running.peer;
  const peer = { ...rest, tls };
  const config: Config = Object.freeze({
    ...wanted,
    peer: Object.freeze(auth === undefined ? peer : { ...peer, auth }),
    state: Object.freeze({ ...wanted.state, dir: running.state.dir }),
  });
  const restart = changedKeys(config, wanted).map(({ key }) => key);
  if (restart.length > 0) {
    const problems = await contradictions(config, () => true);
    if (problems.length > 0) {
      const lines = problems.map((problem) => `\n  ${problemLine(problem)}`).join('');
      throw new ConfigError(
        'CONFIG_NEEDS_RESTART',
        `This takes effect only by a restart, for ${restart.join(', ')} cannot change while peersync runs:${lines}`,
        { restart, problems },
      );
    }
  }
  return { config: isDeepStrictEqual(config, running) ? running : config, restart };
}
