import type { Config } from '../config/config.js';
import { counted, quoted, shellWord } from '../lib/text.js';
import type { StateView } from '../state/state.js';

/** A folder that left the configuration while the peer had documents of it. */
export interface FormerFolder {
  readonly name: string;
  /**
   * The largest number of documents that the peer can have. Some may never have arrived, or may
   * belong to another folder now.
   */
  readonly documents: number;
  /** A whole sentence. */
  readonly message: string;
  /** The remedy, in a whole sentence. */
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

/** Returns the message about such a folder, and a hint with both ways to end it. */
function textsOf(name: string, documents: number) {
  const them = documents === 1 ? 'it' : 'them';
  const forget = `peersync forget ${shellWord(name)}`;
  return {
    message: `The folder ${quoted(name)} is not in the configuration any more; the peer may still have ${counted(documents, 'document')} of it.`,
    hint: `\`${forget} --remove\` removes ${them}, \`${forget} --keep\` leaves ${them} there and forgets the folder.`,
  };
}
