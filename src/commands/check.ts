import { once } from 'node:events';
import { constants } from 'node:fs';
import { access, opendir, readFile, stat, statfs } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { define } from '../cli/command.js';
import { onThisTerminal } from '../cli/consent.js';
import { prepare } from '../cli/global-options.js';
import * as option from '../cli/option.js';
import { answer } from '../cli/output.js';
import { labelled, type Style } from '../cli/terminal.js';
import { counted, safe } from '../cli/text.js';
import { UsageError } from '../cli/usage.js';
import type { Config, FolderConfig, MirrorConfig } from '../config/config.js';
import { type Listen, parseListen } from '../config/url.js';
import { EXIT, messageOf, PeersyncError, systemCode } from '../lib/errors.js';
import type { Logger } from '../lib/logger.js';
import { isWildcard, shellWord, wildcard } from '../lib/text.js';
import { howToPut } from '../mirror/errors.js';
import type { PeerClient } from '../peer/client.js';
import { PeerError } from '../peer/errors.js';
import type { StateView } from '../state/state.js';
import { runningStatus } from './ask.js';
import type { Finding } from './canary.js';
import { openToOthers } from './other-accounts.js';
import { nameMaxSize, runningPeer } from './peer.js';
import { readState } from './without-daemon.js';

const CANARY_TIMEOUT = '2m';

const findingShape = z.object({
  check: z.string(),
  ok: z.boolean(),
  message: z.string(),
  hint: z.string().optional(),
});

/**
 * Looks at everything that has to be right before the daemon can do its work; changes nothing, but
 * for canaries.
 */
export const checkCommand = define({
  output: findingShape,
  outputWith: {
    '--canary': z.union([
      findingShape,
      z.object({
        canary: z
          .object({
            dialect: z.string(),
            holdMs: z.number(),
            timeToVisibleMs: z.number().optional(),
            dropped: z.array(z.string()),
            remaining: z
              .array(z.string())
              .describe('The URLs of the canaries that stay in the peer.'),
          })
          .nullable(),
      }),
    ]),
  },
  options: {
    canary: option.flag('Push tiny documents, and tell what works on this peer'),
    url: option.value(
      "With --canary: below which URL they go; peersync-canary/ below the first folder's unless given",
    ),
    yes: option.flag('With --canary: push without asking'),
    timeout: option.value(
      `With --canary: how long to wait for them (${CANARY_TIMEOUT} unless given)`,
    ),
  },
  examples: [
    ['$0 check', 'Before the first run, or when something is odd'],
    ['$0 check --canary', 'Before the first run with a peer of your own'],
  ],
  run: async (options) => {
    const { url, yes } = options;
    if (!options.canary && (url !== undefined || yes || options.timeout !== undefined))
      throw new UsageError('--url, --yes and --timeout are for --canary.');
    const timeoutMs = option.duration('--timeout', options.timeout ?? CANARY_TIMEOUT);
    const { config, log, path } = await prepare(options);
    const findings: Finding[] = [];
    const report = (finding: Finding) => {
      findings.push(finding);
      const { check, hint, message } = finding;
      const { label, style } = labelOf(finding);
      answer(options, finding, () => [
        labelled(style, `${label.padEnd(7)}  ${check}: ${safe(message)}`),
        ...(hint ? [`         ${safe(hint)}`] : []),
      ]);
    };
    report({ check: 'configuration', ok: true, message: `${path} is valid` });
    for await (const finding of checkMachine(config)) report(finding);
    const isUsable = await checkPeer(config, log, report);
    // Canaries give a better answer.
    if (!options.canary) for await (const finding of checkAddresses(config)) report(finding);
    if (options.canary) {
      const { canaryText, checkCanary } = await import('./canary.js');
      const how = { url, yes, timeoutMs };
      const found = isUsable ? await checkCanary(config, how, log, onThisTerminal()) : undefined;
      for (const finding of found?.findings ?? []) report(finding);
      answer(options, { canary: found?.canary ?? null }, () =>
        found ? canaryText(found.canary) : ['Nothing was pushed, because the peer failed.'],
      );
    }
    const faults = findings.filter((finding) => !finding.ok);
    if (faults.length === 0) return EXIT.done;
    return faults.find((finding) => finding.exitCode !== undefined)?.exitCode ?? EXIT.failure;
  },
});

/** Returns the label of a finding: a finding that is right and has a hint is a note. */
function labelOf({ hint, ok }: Finding): { readonly label: string; readonly style: Style } {
  if (!ok) return { label: 'TROUBLE', style: 'red' };
  if (hint !== undefined) return { label: 'note', style: 'yellow' };
  return { label: 'ok', style: 'green' };
}

/** The fault that a check found, with a remedy. */
class Wrong extends PeersyncError {
  constructor(message: string, hint: string) {
    super({ code: 'CHECK', message, hint });
  }
}

/** A result that is right and could be better. */
type Warning = Required<Pick<Finding, 'message' | 'hint'>>;

/** Returns the result of a check: its success, or the error that it throws. */
async function find(
  check: string,
  look: () => Promise<string | Warning> | string | Warning,
): Promise<Finding> {
  try {
    const found = await look();
    return { check, ok: true, ...(typeof found === 'string' ? { message: found } : found) };
  } catch (error) {
    if (!(error instanceof PeersyncError)) throw error;
    const { message, hint, exitCode } = error;
    return { check, ok: false, message, hint, ...(!(error instanceof Wrong) && { exitCode }) };
  }
}

/** Checks folders, the limit of watches, writable directories and ports. */
async function* checkMachine(config: Config): AsyncGenerator<Finding> {
  let directories = 0;
  // Another finding reports a state that cannot be read.
  const state = await readState(config).catch(() => undefined);
  for (const folder of config.folders) {
    const found = await checkFolder(folder, state);
    directories += found.directories;
    yield found.finding;
  }
  yield await find('watch limit', () => watchLimit(directories));
  yield await checkWritable('state', config.state.dir, 'state.dir');
  const { citations, root, shares, tables } = config.mirror;
  if (shares.length + tables.length + citations.length > 0)
    yield await checkWritable('mirror root', root, 'mirror.root');
  yield* checkPorts(config);
  const others = await openToOthers(config);
  if (others !== undefined)
    yield {
      check: 'other accounts',
      ok: true,
      message: `others can log in to this machine (${others.accounts})`,
      hint: `They ${others.open.join('. They ')}.`,
    };
}

/**
 * Checks whether everything that the rules of a folder take can be read, and counts the
 * directories.
 *
 * @param state undefined if it cannot be read. It may know the folder
 */
export async function checkFolder(folder: FolderConfig, state: StateView | undefined) {
  const [{ FolderRules, failures }, { rootAt }, { mountsAway }] = await Promise.all([
    import('../watch/rules.js'),
    import('../watch/root.js'),
    import('../watch/mounts.js'),
  ]);
  const rules = new FolderRules(folder);
  const unreadable: string[] = [];
  let directories = 0;
  const hint = 'Let the user that peersync runs as read and enter it';
  const finding = await find(`folder ${folder.name}`, async () => {
    const open = [''];
    for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
      const path = join(folder.path, directory);
      try {
        await access(path, constants.R_OK | constants.X_OK);
        await rules.readIgnoreFile(directory);
        for await (const entry of await opendir(path)) {
          const below = join(directory, entry.name);
          if (entry.isDirectory() && rules.closedEntered(below) === undefined) open.push(below);
        }
      } catch (error) {
        unreadable.push(`${path} (${messageOf(error)})`);
        if (directory === '' && systemCode(error) === 'ENOENT')
          return await missingFolder(folder, state);
        if (directory === '' && (await isNoDirectory(path)))
          throw new Wrong(
            `${path} is no directory`,
            'Name the directory that holds it in `folders`.',
          );
        if (directory === '')
          throw new Wrong(`${path} cannot be read: ${messageOf(error)}`, `${hint}.`);
      }
      directories += 1;
    }
    const { replaced } = state === undefined ? {} : await rootAt(folder, state);
    if (replaced !== undefined) throw new Wrong(replaced.message, replaced.hint);
    const [unmounted] = state === undefined ? [] : await mountsAway(folder, state);
    if (unmounted !== undefined) {
      const { message, hint } = failures.mountAway(join(folder.path, unmounted), folder.name);
      throw new Wrong(message, hint);
    }
    if (unreadable.length === 0)
      return `${folder.path} is readable, ${counted(directories, 'directory', 'directories')}`;
    const message = `not all of ${folder.path} can be read, first ${unreadable[0]}`;
    throw new Wrong(message, `${hint}, or add it to \`ignore\`.`);
  });
  return { finding, directories };
}

/** For a file, `access` fails only because it cannot be entered. */
async function isNoDirectory(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && !found.isDirectory();
}

/**
 * Says that a folder is not there: it is to be made, or it is away. A directory made in the place
 * of one that was there would stand below the mount point, and the files that it held would seem
 * removed.
 */
async function missingFolder(folder: FolderConfig, state: StateView | undefined): Promise<never> {
  const { wasSeen } = await import('../watch/root.js');
  if (state === undefined || wasSeen(folder, state))
    throw new Wrong(
      `${folder.path} does not exist`,
      'Mount it or bring it back, or mend the path in `folders`.',
    );
  await writableAbove(folder.path, 'folders');
  throw new Wrong(
    `${folder.path} does not exist`,
    `Make it with \`mkdir -p ${shellWord(folder.path)}\`, start with \`peersync run --create\`, or mend the path in \`folders\`.`,
  );
}

/**
 * Reports documents that the peer accepted and may never show; nothing if the state has none.
 */
async function* checkAddresses(config: Config): AsyncGenerator<Finding> {
  // Another finding reports a state that cannot be read.
  const state = await readState(config).catch(() => undefined);
  if (state === undefined) return;
  const { statusReport } = await import('../report/status.js');
  for (const { code, hint, message } of statusReport(config, state, undefined).conditions)
    if (code === 'ADDRESSES_UNSEEN') yield { check: 'addresses', ok: false, message, hint };
}

async function watchLimit(directories: number): Promise<string> {
  const text = await readFile('/proc/sys/fs/inotify/max_user_watches', 'utf8').catch(
    () => undefined,
  );
  if (text === undefined) return 'this system tells of none';
  const limit = Number(text);
  const message = `${counted(directories, 'directory', 'directories')} to watch, ${limit} watches allowed for this user`;
  if (directories < limit) return message;
  const enough = Math.max(524_288, directories * 2);
  throw new Wrong(
    message,
    `Raise it: sysctl fs.inotify.max_user_watches=${enough}; until then changes are found by rescans only.`,
  );
}

/**
 * Checks whether the peer is reachable, admits us, and answers as a search peer does. It ends with
 * the first failure. Then it checks whether the peer has what is mirrored.
 *
 * @returns whether the peer accepts pushes, regardless of what is mirrored
 */
export async function checkPeer(
  config: Config,
  log: Logger,
  report: (finding: Finding) => void,
): Promise<boolean> {
  let client: PeerClient | undefined;
  const peer = await find('peer', async () => {
    client = await runningPeer(config, log);
    if (client === undefined) return 'the embedded peer starts with the daemon';
    const { ms, server } = await client.ping();
    return `it answers in ${Math.round(ms)} ms${server === undefined ? '' : ` (${server})`}`;
  });
  report(peer);
  const known = client;
  if (known === undefined) return peer.ok;
  try {
    let isUsable = peer.ok;
    for (const [check, look] of [['dialect', dialectOf] as const, ['access', tryPush] as const]) {
      if (!isUsable) return false;
      const finding = await find(check, () => look(known));
      report(finding);
      isUsable = finding.ok;
    }
    if (isUsable) for await (const finding of checkMirrored(config.mirror, known)) report(finding);
    return isUsable;
  } finally {
    await known.close();
  }
}

/** Checks whether the configured dialect is that of the peer; without one, reports the dialect. */
async function dialectOf(client: PeerClient): Promise<string> {
  const configured = client.dialect;
  const dialect = await client.detect().catch((error: unknown) => {
    if (error instanceof PeerError && error.code === 'PEER_ANSWER' && configured !== undefined)
      return undefined;
    throw error;
  });
  if (dialect === undefined)
    return `${configured}, as configured; what the peer answers does not tell`;
  if (configured === undefined || configured === dialect) return `the peer speaks ${dialect}`;
  throw new Wrong(
    `the peer speaks ${dialect}, and is configured as ${configured}`,
    'Leave `peer.dialect` out: it is found out.',
  );
}

/**
 * Pushes nothing, which changes nothing. A peer that does not take that (400 and the like) let us
 * in all the same.
 */
async function tryPush(client: PeerClient): Promise<string> {
  try {
    await client.push([]);
    return 'the peer lets us in and takes pushes';
  } catch (error) {
    if (error instanceof PeerError && error.code === 'PEER_REFUSED' && error.status !== 404)
      return 'the peer lets us in';
    throw error;
  }
}

/**
 * Checks whether the peer has the mirrored objects, one after the other, without reading them. It
 * ends if the peer does not answer.
 */
export async function* checkMirrored(
  { shares, tables }: Pick<MirrorConfig, 'shares' | 'tables'>,
  client: Pick<PeerClient, 'share' | 'shares' | 'tables'>,
): AsyncGenerator<Finding> {
  const there = (isThere: boolean, kind: 'table' | 'share', name: string) => {
    const what = kind === 'table' ? 'table' : 'shared object';
    if (isThere) return `the peer has the ${what}`;
    const hint = `Mend its name in \`mirror\` (upper and lower case count), or put it there: ${howToPut(kind, name)}.`;
    throw new Wrong(`the peer has no ${what} "${name}"`, hint);
  };
  const matching = (pattern: string, listed: readonly string[], what: string) => {
    const count = listed.filter((each) => wildcard(pattern).test(each)).length;
    return `matches ${counted(count, what)} of the peer`;
  };
  let listed: readonly string[] = [];
  if (tables.length > 0) {
    const listing = await find('mirrored tables', async () => {
      listed = await client.tables.list();
      return '';
    });
    if (!listing.ok) yield listing;
    if (listing.exitCode === EXIT.unreachable) return;
    for (const { name, table } of listing.ok ? tables : [])
      yield await find(`mirror ${name}`, () =>
        isWildcard(table)
          ? matching(table, listed, 'table')
          : there(listed.includes(table), 'table', table),
      );
  }
  for (const { name, data, c, maxSize } of shares) {
    const finding = await find(`mirror ${name}`, async () => {
      if (!isWildcard(data)) {
        const query = c === undefined ? { data } : { data, c };
        const isThere = await client
          .share(query, async () => true, { maxBytes: maxSize })
          .catch((error) => nameMaxSize(error, 'Raise its `maxSize`.'));
        return there(isThere === true, 'share', data);
      }
      const group = c === undefined ? '' : `${c}/`;
      const names = (await client.shares())?.filter((each) => each.startsWith(group));
      if (names === undefined)
        throw new Wrong('this peer does not list its shared objects', 'Name each of them.');
      return matching(`${group}${data}`, names, 'shared object');
    });
    yield finding;
    if (finding.exitCode === EXIT.unreachable) return;
  }
}

/**
 * Checks whether a directory can be written and has room. If it does not exist yet, its nearest
 * existing parent is checked.
 *
 * @param key the key of the configuration that names the directory
 * @param freeBytes returns the free space on the disk of a path, for this user
 */
export async function checkWritable(
  check: string,
  directory: string,
  key: string,
  freeBytes: (path: string) => Promise<number> = freeOf,
): Promise<Finding> {
  return await find(check, async () => {
    const path = await writableAbove(directory, key);
    if ((await freeBytes(path)) === 0)
      throw new Wrong(
        `no space is left on the disk of ${directory}`,
        'Free some space there; nothing is lost.',
      );
    if (path !== directory) return `${directory} will be made when it is needed`;
    const message = `${path} can be written`;
    const isClosed = key !== 'state.dir' || ((await stat(path)).mode & 0o077) === 0;
    if (isClosed) return message;
    return {
      message: `${message}, and others can look into it`,
      hint: `Close it to them: chmod 700 ${path}`,
    };
  });
}

/**
 * The directory, or the nearest one above that is there. @throws Wrong where it cannot be written
 */
async function writableAbove(directory: string, key: string): Promise<string> {
  try {
    await access(directory, constants.W_OK | constants.X_OK);
    return directory;
  } catch (error) {
    if (systemCode(error) === 'ENOENT' && directory !== dirname(directory))
      return await writableAbove(dirname(directory), key);
    throw new Wrong(
      `${directory} cannot be written: ${messageOf(error)}`,
      `Let the user that peersync runs as write there, or mend \`${key}\`.`,
    );
  }
}

async function freeOf(path: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(path);
  // Some file systems do not report their size.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/**
 * Checks whether the daemon can listen on its addresses, or already does. Yields nothing for an
 * address that is off.
 */
export async function* checkPorts({ peer, state, status }: Config): AsyncGenerator<Finding> {
  // If the daemon does not answer this user, only its port shows it.
  const ours = await runningStatus(state.dir).catch((error: unknown) => {
    if (!(error instanceof PeersyncError)) throw error;
  });
  const embedded =
    peer.url === 'embedded' ? { host: '127.0.0.1', port: peer.embedded.port } : undefined;
  const ports = [
    { check: 'embedded peer', key: 'peer.embedded.port', listen: embedded, served: ours?.peer.url },
    {
      check: 'status page',
      key: 'status.listen',
      listen: parseListen(status.listen),
      served: ours?.page,
    },
  ];
  // Each is held until all were tried, so that two of the same do not pass one after the other.
  const held: Server[] = [];
  try {
    for (const { check, key, listen, served } of ports) {
      if (listen === undefined) continue;
      yield await find(check, async () => {
        const server = createServer((socket) => socket.destroy());
        try {
          server.listen({ ...listen, exclusive: true });
          await once(server, 'listening');
          held.push(server);
          return `it can listen at ${addressOf(listen)}`;
        } catch (error) {
          // Our own daemon would make room for itself.
          const isOurs = served !== undefined && Number(new URL(served).port || 80) === listen.port;
          if (isOurs) return `the running daemon serves it at ${served}`;
          throw notListening(error, listen, key);
        }
      });
    }
  } finally {
    await Promise.all(held.map((server) => new Promise((closed) => server.close(closed))));
  }
}

/** Returns the reason why a program cannot listen there. */
function notListening(error: unknown, listen: Listen, key: string): Wrong {
  const at = addressOf(listen);
  if (systemCode(error) !== 'EADDRINUSE')
    return new Wrong(`nobody can listen at ${at}: ${messageOf(error)}`, `Set another \`${key}\`.`);
  const hint = `Stop what listens there, unless it is the daemon of this configuration, or set another \`${key}\`.`;
  return new Wrong(`${at} is in use`, hint);
}

function addressOf({ host, port }: Listen): string {
  const name = host.includes(':') ? `[${host}]` : host;
  return port === 0 ? `any free port of ${name}` : `${name}:${port}`;
}
