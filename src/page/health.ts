import { access, constants, statfs } from 'node:fs/promises';
import { messageOf } from '../lib/errors.js';
import type { Stuck } from '../lib/pulse.js';
import { sentence } from '../lib/sentence.js';
import { TROUBLE_WORDS } from '../queue/breaker.js';
import { diskTrouble } from '../report/disk-trouble.js';
import type { Live } from '../report/live.js';
import type { State } from '../state/state.js';

/** Something that keeps peersync from its work: one sentence what, one what to do. */
export interface Reason {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

/** Whether the process is worth keeping; it is not when something stands still that nothing keeps. */
export function aliveReasons(stuck: readonly Stuck[] | undefined): readonly Reason[] {
  return (stuck ?? []).map(({ what }) => ({
    code: 'STUCK',
    message: sentence(`It stands still: ${what}`),
    hint: 'Start peersync again, and tell its makers what the log says.',
  }));
}

export interface ReadyParts {
  readonly live: Pick<Live, 'dialect' | 'queue' | 'folders' | 'silentDisk'>;
  readonly state: Pick<State, 'figures'>;
  readonly stateDir: string;
}

/** What keeps new files from becoming searchable now; empty where nothing does. */
export async function readyReasons({ live, state, stateDir }: ReadyParts): Promise<readonly Reason[]> {
  const others = [...peerReasons(live), ...folderReasons(live)];
  const silent = live.silentDisk();
  // It may be the disk of the state, which would keep the answer waiting.
  if (silent === undefined) return [...others, ...(await stateReasons(state, stateDir))];
  const { code, message, hint } = diskTrouble(silent);
  return [...others, { code, message, hint }];
}

function* peerReasons(live: ReadyParts['live']): Generator<Reason> {
  const { circuit } = live.queue();
  if (circuit.reason !== undefined && circuit.state !== 'closed') {
    yield {
      code: 'PEER',
      message: `The peer ${TROUBLE_WORDS[circuit.reason.kind]}: ${sentence(circuit.reason.message)}`,
      hint: circuit.reason.hint ?? 'It is tried again by itself; what is to be pushed waits.',
    };
  } else if (live.dialect() === undefined) {
    yield {
      code: 'PEER',
      message: 'The peer has not answered yet since peersync started.',
      hint: 'It is asked again by itself; see peer.url if this stays so.',
    };
  }
}

function* folderReasons(live: ReadyParts['live']): Generator<Reason> {
  for (const { name, state, trouble } of live.folders()) {
    if (state !== 'held') continue;
    yield {
      code: 'FOLDER_HELD',
      message: sentence(`The folder ${name} is held: ${trouble?.message ?? 'it is not there'}`),
      hint: trouble?.hint ?? 'Mount it or bring it back, or mend its path in the configuration.',
    };
  }
}

async function stateReasons(state: ReadyParts['state'], dir: string): Promise<readonly Reason[]> {
  const { failure } = state.figures();
  if (failure !== undefined) return [{ code: failure.code, message: failure.message, hint: failure.hint }];
  try {
    await access(dir, constants.R_OK | constants.W_OK | constants.X_OK);
    const { bavail } = await statfs(dir);
    if (bavail > 0) return [];
    return [
      {
        code: 'STATE_FULL',
        message: `No space is left on the disk of the state in ${dir}.`,
        hint: 'Free some space there; nothing is lost, and the work goes on by itself.',
      },
    ];
  } catch (error) {
    return [
      {
        code: 'STATE_UNWRITABLE',
        message: `The state in ${dir} cannot be written (${messageOf(error)}).`,
        hint: 'Make the directory writable for the user that runs peersync, or check its disk.',
      },
    ];
  }
}
