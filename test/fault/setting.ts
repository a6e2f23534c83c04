import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFailed } from 'vitest';
import { ask } from '../support/ask.js';
import { Running } from '../support/cli.js';
import { type ConfigParts, writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { Random } from '../support/random.js';
import { ScriptedPeer } from '../support/scripted-peer.js';
import { temporaryDirectory } from '../support/temp.js';
import { until } from '../support/wait.js';
import { peersync } from '../support/warm-cli.js';
import { BusyUser } from './busy-user.js';

/** Between two looks at everything that the daemon knows, in ms. */
const LOOK_AGAIN_MS = 200;

/** One line of `list --json`. */
export interface Listed {
  readonly folder: string;
  readonly path: string;
  readonly status: string;
  readonly sha256?: string;
  readonly url?: string;
}

/** A configuration, somebody who works in its folders, and one daemon after the other. */
export class Setting {
  readonly random = Random.seeded();
  readonly user: BusyUser;
  readonly stateDirectory: string;
  readonly #directory: string;
  readonly #peer: Readonly<Record<string, unknown>>;
  #config = '';
  readonly #said: string[] = [];

  constructor(peer: Readonly<Record<string, unknown>>) {
    const directory = temporaryDirectory();
    this.stateDirectory = join(directory, 'state');
    this.#directory = directory;
    this.#peer = peer;
    this.configure({});
    // Numbers of its own: how many the user takes hangs on the speed of the machine.
    this.user = new BusyUser(directory, ['one', 'two'], new Random(this.random.seed + 1));
    onTestFailed(() => {
      console.error([`PEERSYNC_TEST_SEED=${this.random.seed} repeats this:`, ...this.#said].join('\n'));
    });
  }

  /** Writes the configuration anew, with these parts instead of the usual ones; nobody is told. */
  configure(parts: Partial<ConfigParts>): void {
    this.#config = writeConfig(this.#directory, {
      peer: this.#peer,
      folders: [{ name: 'one' }, { name: 'two' }],
      push: { maxItems: 10 },
      confirm: { maxInterval: '200ms' },
      ...parts,
    });
  }

  /** Remembers what is done by chance, to be told when the test fails. */
  note(what: string): void {
    this.#said.push(what);
  }

  start(): Running {
    return new Running(['run', '--config', this.#config]);
  }

  /** What `list` knows while no daemon runs. */
  async list(): Promise<Listed[]> {
    const { code, stdout, stderr } = await peersync(['list', '--json', '--config', this.#config]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const lines = stdout.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Listed);
  }

  /** Lets the user rest, and a daemon run until every file is known as it is; then stops the daemon. */
  async settle(limitMs = 120_000): Promise<Listed[]> {
    this.user.rest();
    const daemon = this.start();
    await daemon.says('pushing to');
    let wrong: string[] = [];
    const isDone = async () => {
      // To compare hundreds of files without a rest is more work than the daemon has with them.
      await sleep(LOOK_AGAIN_MS);
      wrong = differences(this.user.files(), (await ask<Listed>(this.stateDirectory, 'list')) ?? []);
      return wrong.length === 0;
    };
    await until(isDone, 'every file is confirmed as it is', limitMs).catch((error: unknown) => {
      throw new Error(`${wrong.join('\n')}\n${daemon.stdout.slice(-2_000)}`, { cause: error });
    });
    expect(await daemon.kill('SIGTERM')).toMatchObject({ code: 0, stderr: '' });
    const listed = await this.list();
    expect(differences(this.user.files(), listed)).toEqual([]);
    return listed;
  }

  /** Asks the daemon. @returns false where none answers */
  async asked(question: string): Promise<boolean> {
    return (await ask(this.stateDirectory, question)) !== undefined;
  }
}

/** A setting whose peer is a process of its own behind a proxy that remembers what passes. */
export async function settingBehindProxy() {
  const peer = await PeerProcess.start(temporaryDirectory());
  const proxy = await ScriptedPeer.start(peer.url);
  return { peer, proxy, setting: new Setting(peer.section(proxy.url)) };
}

/** The peer shows every file of the user as it is. */
export async function expectShown(peer: PeerProcess, user: BusyUser): Promise<void> {
  for (const [path, digest] of user.files())
    expect(await peer.peerdoc(urlOf(path))).toMatchObject({ digest });
}

export function urlOf(path: string): string {
  return `https://files.example.org/${path}`;
}

export function isConfirmed({ status }: Listed): boolean {
  return status === 'confirmed';
}

/** What is known otherwise than it is: files that are not confirmed as they are, and removed ones that are not gone. */
function differences(files: ReadonlyMap<string, string>, listed: readonly Listed[]): string[] {
  const known = new Map(listed.map((entry) => [`${entry.folder}/${entry.path}`, entry]));
  const unconfirmed = [...files].flatMap(([path, digest]) => {
    const entry = known.get(path);
    if (entry?.status === 'confirmed' && entry.sha256 === digest) return [];
    return `${path} with ${digest}: ${entry === undefined ? 'not known' : JSON.stringify(entry)}`;
  });
  const ghosts = [...known].filter(([path, { status }]) => !files.has(path) && status !== 'gone');
  return [...unconfirmed, ...ghosts.map(([path, entry]) => `${path} is removed: ${JSON.stringify(entry)}`)];
}
