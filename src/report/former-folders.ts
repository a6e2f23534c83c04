import type { Config } from '../config/config.js';
import { counted, quoted, shellWord } from '../lib/text.js';
import type { StateView } from '../state/state.js';

/** A folder that left the configuration while the peer had documents of it. */
export interface FormerFolder {
  readonly name: string;
  /**
   * How many the peer has at most: some may never have arrived, or be documents of another folder
   * by now.
   */
  readonly documents: number;
  /** A whole sentence. */
  readonly message: string;
  /** What to do, in a whole sentence. */
  readonly hint: string;
}

/** The folders that are not in the configuration any more and have records, by name. */
export function formerFolders({ folders }: Config, state: StateView): readonly FormerFolder[] {
  const configured = new Set(folders.map(({ name }) => name));
  const former: FormerFolder[] = [];
  for (const name of [...state.entries.folders()].sort()) {
    if (configured.has(name)) continue;
    const { accepted, confirmed, gone, pending, quarantined } = state.counts(name);
    const documents = accepted + confirmed + gone + pending + quarantined;
    if (documents > 0) former.push({ name, documents, ...textsOf(name, documents) });
  }
  return former;
}

/** How such a folder stands, and both ways to end that. */
function textsOf(name: string, documents: number) {
  const them = documents === 1 ? 'it' : 'them';
  const forget = `peersync forget ${shellWord(name)}`;
  return {
    message: `The folder ${quoted(name)} is not in the configuration any more; the peer may still have ${counted(documents, 'document')} of it.`,
    hint: `\`${forget} --remove\` removes ${them}, \`${forget} --keep\` leaves ${them} there and forgets the folder.`,
  };
}
