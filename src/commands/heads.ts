/** What the help shows of a command. */
export interface Head {
  /** With its arguments: `why <path>`. */
  readonly command: string;
  readonly describe: string;
}

/** In the order in which the help names them. The help needs no more, and loads nothing else of the commands. */
export const HEADS = {
  run: {
    command: 'run',
    describe: 'Watch the folders, push and confirm, until SIGTERM or SIGINT',
  },
  once: {
    command: 'once',
    describe: 'Scan the folders, push and confirm what is new, bring the mirrors up to date, then exit',
  },
  status: {
    command: 'status',
    describe: 'Tell how everything stands',
  },
  watch: {
    command: 'watch',
    describe:
      'Show what the running daemon does as it does it: folders, speed, the peer, trouble, latest events',
  },
  list: {
    command: 'list',
    describe: 'List the known files',
  },
  why: {
    command: 'why <path>',
    describe: 'Explain one file: rule, status, history, evidence or error, and what happens next',
  },
  retry: {
    command: 'retry [path..]',
    describe: 'Try again what is in quarantine, waits for its next attempt, or was passed over',
  },
  verify: {
    command: 'verify',
    describe: 'Look up in the peer once more what is confirmed, and tell what is missing',
  },
  rescan: {
    command: 'rescan [folder]',
    describe: 'Let the running daemon scan its folders now',
  },
  reload: {
    command: 'reload',
    describe: 'Let the running daemon take up its changed configuration, as SIGHUP does',
  },
  pause: {
    command: 'pause',
    describe: 'Send nothing to the peer for a while; what changes on disk is still read, and waits',
  },
  resume: {
    command: 'resume',
    describe: 'End a pause: the work with the peer goes on',
  },
  mirror: {
    command: 'mirror [names..]',
    describe: "Bring the files that follow the peer's tables and shared objects up to date now",
  },
  check: {
    command: 'check',
    describe:
      'Check the configuration, the folders, the watch limit, the state, the ports, the peer, the access to it and what is mirrored',
  },
  init: {
    command: 'init',
    describe: 'Write a first configuration; never overwrites one',
  },
  schema: {
    command: 'schema',
    describe: 'Print the JSON Schema of the configuration, so that editors complete it',
  },
  doc: {
    command: 'doc [url]',
    describe: 'Show what the peer has of one document',
  },
  citation: {
    command: 'citation [url]',
    describe: 'Show which sentences of a document stand in others too, and who cites it',
  },
  push: {
    command: 'push [file..]',
    describe: 'Push single files, outside of all folders, and wait until the peer shows them',
  },
  share: {
    command: 'share',
    describe: 'Fetch a shared object of the peer',
  },
  table: {
    command: 'table',
    describe: 'Show and change tables of the peer',
  },
  peer: {
    command: 'peer',
    describe: 'Run the embedded peer alone, until SIGTERM or SIGINT',
  },
  service: {
    command: 'service',
    describe: 'Let systemd run the daemon, from every start of the machine on',
  },
} satisfies Readonly<Record<string, Head>>;

export type CommandName = keyof typeof HEADS;
