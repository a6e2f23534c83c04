import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, opendir, readFile, statfs } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { Config, FolderConfig, MirrorConfig, ShareMirrorConfig } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { EXIT, type ExitCode, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { isWildcard, wildcard } from '../lib/text.js';
import { isTooLarge } from '../mirror/errors.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError } from '../peer/errors.js';
import { answer, define, duration, flag, prepare, UsageError, value } from './context.js';
import { readState, runningStatus } from './daemon-access.js';
import { runningPeer } from './peer.js';
import { onThisTerminal } from './terminal.js';
import { counted, safe } from './text.js';

const CANARY_TIMEOUT = '2m';

/** Looks at everything that has to be right before the daemon can do its work; changes nothing, but for canaries. */
export const checkCommand = define({
  options: {
    canary: flag('Push tiny documents, and tell what works on this peer'),
    url: value(
      "With --canary: below which URL they go; peersync-canary/ below the first folder's unless given",
    ),
    yes: flag('With --canary: push without asking'),
    timeout: value(`With --canary: how long to wait for them (${CANARY_TIMEOUT} unless given)`),
  },
  examples: [
    ['$0 check', 'Before the first run, or when something is odd'],
    ['$0 check --canary', 'Before the first run with a peer of your own'],
  ],
  run: async (options) => {
    const { url, yes } = options;
    if (!options.canary && (url !== undefined || yes || options.timeout !== undefined))
      throw new UsageError('--url, --yes and --timeout are for --canary.');
    const timeoutMs = duration('--timeout', options.timeout ?? CANARY_TIMEOUT);
    const { config, log, path } = await prepare(options);
    const findings: Finding[] = [];
    const tell = (finding: Finding) => {
      findings.push(finding);
      const { check, hint, message, ok } = finding;
      if (options.canary && options.json) return;
      answer(options, finding, () => [
        `${ok ? 'ok     ' : 'TROUBLE'}  ${check}: ${safe(message)}`,
        ...(ok || !hint ? [] : [`         ${safe(hint)}`]),
      ]);
    };
    tell(works('configuration', `${path} is valid`));
    for await (const finding of checkMachine(config)) tell(finding);
    const isUsable = await checkPeer(config, log, tell);
    let hasFailed = false;
    if (options.canary) {
      const { canaryText, checkCanary } = await import('./canary.js');
      const how = { url, yes, timeoutMs };
      const report = isUsable ? await checkCanary(config, how, log, onThisTerminal()) : undefined;
      hasFailed = report === undefined || report.rows.some(({ status }) => status === 'fails');
      answer(options, { findings, canary: report ?? null }, () =>
        report === undefined
          ? ['-        canary: nothing was pushed, for the peer has trouble']
          : canaryText(report),
      );
    }
    const troubles = findings.filter((finding) => !finding.ok);
    if (troubles.length === 0) return hasFailed ? EXIT.failure : EXIT.done;
    return troubles.find((finding) => finding.exitCode !== undefined)?.exitCode ?? EXIT.failure;
  },
});

/** Folders, the limit of watches, what is written to, and the ports. */
async function* checkMachine(config: Config): AsyncGenerator<Finding> {
  let directories = 0;
  for (const folder of config.folders) {
    const found = await checkFolder(folder, config);
    directories += found.directories;
    yield found.finding;
  }
  yield await checkWatchLimit(directories);
  yield await checkWritable('state', config.state.dir, 'state.dir');
  const { citations, root, shares, tables } = config.mirror;
  if (shares.length + tables.length + citations.length > 0)
    yield await checkWritable('mirror root', root, 'mirror.root');
  yield* checkPorts(config);
}

/** Whether all can be read that its rules do not keep out; and how many directories that are. */
export async function checkFolder(folder: FolderConfig, config: Config) {
  const check = `folder ${folder.name}`;
  const hint = 'Let the user that peersync runs as read and enter it';
  const { FolderRules } = await import('../watch/rules.js');
  const rules = new FolderRules(folder);
  let directories = 0;
  let unreadable: string | undefined;
  const open = [''];
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    const path = join(folder.path, directory);
    directories += 1;
    try {
      await access(path, constants.R_OK | constants.X_OK);
      await rules.readIgnoreFile(directory);
      for await (const entry of await opendir(path)) {
        const below = join(directory, entry.name);
        if (entry.isDirectory() && rules.closedEntered(below) === undefined) open.push(below);
      }
    } catch (error) {
      if (directory !== '') unreadable ??= `${path} (${messageOf(error)})`;
      else {
        const isMissing = systemCode(error) === 'ENOENT';
        const finding = isMissing
          ? fails(check, `${path} does not exist`, await missingHint(folder, config))
          : fails(check, `${path} cannot be read: ${messageOf(error)}`, `${hint}.`);
        return { finding, directories: 0 };
      }
    }
  }
  const readable = `${folder.path} is readable, ${counted(directories, 'directory', 'directories')}`;
  const partly = `not all of ${folder.path} can be read, first ${unreadable}`;
  const finding =
    unreadable === undefined
      ? works(check, readable)
      : fails(check, partly, `${hint}, or add it to \`ignore\`.`);
  return { finding, directories };
}

/** A directory made in the place of one that was there would stand below the mount point, and what it held would seem removed. */
async function missingHint(folder: FolderConfig, config: Config): Promise<string> {
  const { wasSeen } = await import('../watch/root.js');
  // A state that cannot be read may know the folder; its own finding says what is wrong with it.
  const isKnown = await readState(config).then(
    (state) => wasSeen(folder, state),
    () => true,
  );
  return isKnown
    ? 'Mount it or bring it back, or mend the path in `folders`.'
    : 'Create it, mend the path in `folders`, or start with `peersync run --create`.';
}

async function checkWatchLimit(directories: number): Promise<Finding> {
  const check = 'watch limit';
  const text = await readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(() => undefined);
  if (text === undefined) return works(check, 'this system tells of none');
  const limit = Number(text);
  const message = `${counted(directories, 'directory', 'directories')} to watch, ${limit} watches allowed for this user`;
  if (directories < limit) return works(check, message);
  const enough = Math.max(524_288, directories * 2);
  return fails(
    check,
    message,
    `Raise it: sysctl fs.inotify.max_user_watches=${enough}; until then changes are found by rescans only.`,
  );
}

/**
 * Whether the peer is there, lets us in, and answers as a search peer does; ends with the first trouble. Then whether it has what
 * is mirrored.
 *
 * @returns whether the peer takes pushes, whatever it has of what is mirrored
 */
export async function checkPeer(
  config: Config,
  log: Logger,
  tell: (finding: Finding) => void,
): Promise<boolean> {
  let client: PeerClient | undefined;
  try {
    client = await runningPeer(config, log);
    if (client === undefined) {
      tell(works('peer', 'the embedded peer starts with the daemon'));
      return true;
    }
    const { ms, server } = await client.ping();
    const by = server === undefined ? '' : ` (${server})`;
    tell(works('peer', `it answers in ${Math.round(ms)} ms${by}`));
    for (const check of [checkDialect, checkPush]) {
      const finding = await check(client);
      tell(finding);
      if (!finding.ok) return false;
    }
    for await (const finding of checkMirrored(config.mirror, client)) tell(finding);
    return true;
  } catch (error) {
    tell(troubleOf('peer', error));
    return false;
  } finally {
    await client?.close();
  }
}

/** Whether a dialect that is configured is the peer's; where none is, which that is. */
async function checkDialect(client: PeerClient): Promise<Finding> {
  const check = 'dialect';
  const configured = client.dialect;
  try {
    const dialect = await client.detect();
    if (configured === undefined || configured === dialect) return works(check, `the peer speaks ${dialect}`);
    return fails(
      check,
      `the peer speaks ${dialect}, and is configured as ${configured}`,
      'Leave `peer.dialect` out: it is found out.',
    );
  } catch (error) {
    if (!(error instanceof PeerError)) throw error;
    if (error.code !== 'PEER_ANSWER' || configured === undefined) return troubleOf(check, error);
    return works(check, `${configured}, as configured; what the peer answers does not tell`);
  }
}

/** Pushes nothing, which changes nothing. A peer that does not take that (400 and the like) let us in all the same. */
async function checkPush(client: PeerClient): Promise<Finding> {
  try {
    await client.push([]);
    return works('access', 'the peer lets us in and takes pushes');
  } catch (error) {
    if (!(error instanceof PeerError)) throw error;
    if (error.code === 'PEER_REFUSED' && error.status !== 404) return works('access', 'the peer lets us in');
    return troubleOf(error.code === 'PEER_AUTH' ? 'access' : 'pushing', error);
  }
}

/** Whether the peer has what is mirrored, each by itself. Nothing of it is read. Ends where the peer does not answer. */
export async function* checkMirrored(
  { shares, tables }: Pick<MirrorConfig, 'shares' | 'tables'>,
  client: Pick<PeerClient, 'share' | 'shares' | 'tables'>,
): AsyncGenerator<Finding> {
  const found = (name: string, wanted: string, isThere: boolean, what: string) =>
    isThere
      ? works(`mirror ${name}`, `the peer has the ${what}`)
      : fails(
          `mirror ${name}`,
          `the peer has no ${what} "${wanted}"`,
          'Mend its name in `mirror` (upper and lower case count), or put it there.',
        );
  const matching = (name: string, pattern: string, listed: readonly string[], what: string) => {
    const count = listed.filter((each) => wildcard(pattern).test(each)).length;
    return works(`mirror ${name}`, `matches ${counted(count, what)} of the peer`);
  };
  if (tables.length > 0) {
    const listed = await client.tables.list().catch((error: unknown) => troubleOf('mirrored tables', error));
    if ('ok' in listed) {
      yield listed;
      if (listed.exitCode === EXIT.unreachable) return;
    } else
      for (const { name, table } of tables)
        yield isWildcard(table)
          ? matching(name, table, listed, 'table')
          : found(name, table, listed.includes(table), 'table');
  }
  const checkShare = async ({ name, data, c, maxSize }: ShareMirrorConfig): Promise<Finding> => {
    if (!isWildcard(data)) {
      const query = c === undefined ? { data } : { data, c };
      const isThere = await client.share(query, async () => true, { maxBytes: maxSize });
      return found(name, data, isThere === true, 'shared object');
    }
    const group = c === undefined ? '' : `${c}/`;
    const listed = (await client.shares())?.filter((each) => each.startsWith(group));
    if (listed === undefined)
      return fails(`mirror ${name}`, 'this peer does not list its shared objects', 'Name each of them.');
    const names = listed.map((each) => each.slice(group.length));
    return matching(name, data, names, 'shared object');
  };
  for (const share of shares) {
    const finding = await checkShare(share).catch((error: unknown) => {
      const trouble = troubleOf(`mirror ${share.name}`, error);
      return isTooLarge(error) ? { ...trouble, hint: 'Raise its `maxSize`.' } : trouble;
    });
    yield finding;
    if (finding.exitCode === EXIT.unreachable) return;
  }
}

/** One thing that was checked. */
export interface Finding {
  readonly check: string;
  readonly ok: boolean;
  readonly message: string;
  readonly hint?: string;
  /** The exit code that this finding alone would lead to. */
  readonly exitCode?: ExitCode;
}

function works(check: string, message: string): Finding {
  return { check, ok: true, message };
}

function fails(check: string, message: string, hint: string): Finding {
  return { check, ok: false, message, hint };
}

/** The finding that an error is. @throws the error where it is none that a person may read */
function troubleOf(check: string, error: unknown): Finding {
  if (!(error instanceof PeersyncError)) throw error;
  const { message, hint, exitCode } = error;
  return { check, ok: false, message, hint, exitCode };
}

/**
 * Whether a directory, or the nearest one above where it is still to be made, can be written and has room.
 *
 * @param key of the configuration, which names it
 * @param freeBytes what is free on the disk of a path, for this user
 */
export async function checkWritable(
  check: string,
  directory: string,
  key: string,
  freeBytes: (path: string) => Promise<number> = freeOf,
): Promise<Finding> {
  for (let path = directory; ; path = dirname(path)) {
    try {
      await access(path, constants.W_OK | constants.X_OK);
      if ((await freeBytes(path)) === 0)
        return fails(
          check,
          `no space is left on the disk of ${directory}`,
          'Free some space there; nothing is lost, and a daemon goes on by itself.',
        );
      const message =
        path === directory ? `${directory} can be written` : `${directory} will be made when it is needed`;
      return works(check, message);
    } catch (error) {
      if (systemCode(error) === 'ENOENT' && path !== dirname(path)) continue;
      const message = `${path} cannot be written: ${messageOf(error)}`;
      return fails(check, message, `Let the user that peersync runs as write there, or mend \`${key}\`.`);
    }
  }
}

async function freeOf(path: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(path);
  // Some file systems do not tell how large they are.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** Whether the daemon can listen where it is to, or does already; nothing where it is to listen nowhere. */
export async function* checkPorts({ peer, state, status }: Config): AsyncGenerator<Finding> {
  const running = await runningStatus(state.dir).catch((error: unknown) => {
    if (error instanceof PeersyncError) return 'unknown' as const;
    throw error;
  });
  const ours = running === 'unknown' ? undefined : running;
  const embedded = peer.url === 'embedded' ? { host: '127.0.0.1', port: peer.embedded.port } : undefined;
  const ports = [
    { check: 'embedded peer', key: 'peer.embedded.port', listen: embedded, served: ours?.peer.url },
    { check: 'status page', key: 'status.listen', listen: parseListen(status.listen), served: ours?.page },
  ];
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const { check, key, listen, served } of ports) {
      if (listen === undefined) continue;
      try {
        held.push(await listenAt(listen));
        yield works(check, `it can listen at ${addressOf(listen)}`);
      } catch (error) {
        // Our own daemon would make room for itself.
        const isOurs = served !== undefined && Number(new URL(served).port || 80) === listen.port;
        yield isOurs
          ? works(check, `the running daemon serves it at ${served}`)
          : fails(check, ...notListening(error, listen, key, running === 'unknown'));
      }
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** Why nobody can listen there, and what to do. @param mayBeOurs whether the daemon of this configuration may be there */
function notListening(
  error: unknown,
  listen: Listen,
  key: string,
  mayBeOurs: boolean,
): readonly [message: string, hint: string] {
  const at = addressOf(listen);
  const another = `set another \`${key}\`.`;
  const stop = mayBeOurs
    ? 'If that is the daemon of this configuration, which could not be asked, all is well; else stop'
    : 'Stop';
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return [`${at} is in use`, `${stop} what listens there, or ${another}`];
    case 'EADDRNOTAVAIL':
      return [
        `this machine has no address ${listen.host}`,
        `Set \`${key}\` to an address that it has; \`ip address\` names them.`,
      ];
    case 'EACCES':
      return [`this user may not listen at ${at}`, `Set \`${key}\` to a port from 1024 up.`];
    default:
      return [`nobody can listen at ${at}: ${messageOf(error)}`, `Mend what is wrong, or ${another}`];
  }
}

async function listenAt({ host, port }: Listen): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  return server;
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}
