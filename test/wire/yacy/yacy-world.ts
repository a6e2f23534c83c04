import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../../support/ask.js';
import { type Ended, Running } from '../../support/cli.js';
import { temporaryDirectory } from '../../support/temp.js';
import { until } from '../../support/wait.js';
import { peersync } from '../../support/warm-cli.js';
import { timing } from './timing.js';
import { type Served, YacyModel, type YacyOptions } from './yacy-model.js';

/** Speed-up compared to a real peer. */
export const SPEED = 20;

/** Between two questions to the daemon, in ms: asking is not to be most of the work. */
const ASK_AGAIN_MS = 30;

/** One line of `list --json`. */
export interface Listed {
  readonly folder: string;
  readonly path: string;
  readonly status: string;
  readonly url: string;
  readonly sha256?: string;
}

type Section = Readonly<Record<string, unknown>>;

export interface WorldOptions {
  readonly peer?: YacyOptions;
  /** By name; their URLs. Default one, `notes`, of a public host. */
  readonly folders?: Readonly<Record<string, string>>;
  readonly push?: Section;
  readonly confirm?: Section;
  /** Additional settings of folders, by name. */
  readonly each?: Readonly<Record<string, Section>>;
  /** Additional sections of the configuration. */
  readonly more?: Section;
}

const PUBLIC = { notes: 'http://notes.example.org/n/' };

/**
 * Folders, a model of a YaCy peer that goes 20 times as fast, and a peersync that is configured for
 * it as a user would, but for the hold, which is as much shorter as the peer is faster. It is apart
 * from the site because that has the embedded peer.
 */
export class YacyWorld {
  readonly directory = temporaryDirectory();
  readonly config = join(this.directory, 'config.json');

  private constructor(
    readonly peer: YacyModel,
    readonly folders: Readonly<Record<string, string>>,
  ) {}

  static async start({ folders = PUBLIC, ...options }: WorldOptions = {}): Promise<YacyWorld> {
    const peer = await YacyModel.start({ timing: timing(SPEED), ...options.peer });
    const world = new YacyWorld(peer, folders);
    const { password } = options.peer ?? {};
    const auth =
      password === undefined
        ? {}
        : { auth: { username: 'admin', password: { env: 'YACY_PASSWORD' } } };
    for (const name of Object.keys(folders)) mkdirSync(join(world.directory, name));
    const config = {
      peer: { url: peer.url, ...auth },
      folders: Object.entries(folders).map(([name, url]) => ({
        name,
        path: join(world.directory, name),
        collection: name,
        url,
        settle: '100ms',
        ...options.each?.[name],
      })),
      state: { dir: join(world.directory, 'state') },
      // Two worlds at a time would want the same port, which `check` reports.
      status: { listen: 'off' },
      push: {
        linger: '20ms',
        requestsPerSecond: 500,
        backoff: { min: '20ms', max: '200ms' },
        ...options.push,
      },
      confirm: {
        requestsPerSecond: 2_000,
        concurrency: 16,
        hold: `${20_000 / SPEED}ms`,
        timeout: '20s',
        maxInterval: '1s',
        ...options.confirm,
      },
      ...options.more,
    };
    writeFileSync(world.config, JSON.stringify(config, undefined, 2));
    return world;
  }

  /** Writes a file; it was last changed at a whole second, some time ago, unless given. */
  write(path: string, content: string | Uint8Array, modified = Date.UTC(2024, 1, 29, 12)): void {
    const file = join(this.directory, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    utimesSync(file, modified / 1_000, modified / 1_000);
  }

  /** The URL of the document of `folder/path`. */
  url(path: string): string {
    const [folder = '', ...rest] = path.split('/');
    return `${this.folders[folder]}${rest.map(encodeURIComponent).join('/')}`;
  }

  run(...args: string[]): Promise<Ended> {
    return peersync([...args, '--config', this.config], { env: ENVIRONMENT });
  }

  start(...args: readonly string[]): Running {
    return new Running(['run', '--config', this.config, ...args], { env: ENVIRONMENT });
  }

  /** Returns the records of the running daemon. */
  async ask(): Promise<Listed[]> {
    return (await ask<Listed>(join(this.directory, 'state'), 'list')) ?? [];
  }

  /** Waits until the running daemon has so many items of a status. */
  async reached(status: string, count: number): Promise<void> {
    let last: Listed[] = [];
    const isReached = async () => {
      await sleep(ASK_AGAIN_MS);
      last = await this.ask();
      return last.filter((item) => item.status === status).length >= count;
    };
    await until(isReached, `${count} items are ${status}`).catch((error: unknown) => {
      throw new Error(JSON.stringify(last, undefined, 1), { cause: error });
    });
  }

  /** Returns the statuses by `folder/path` while no daemon runs. */
  async statuses(): Promise<Record<string, string>> {
    const { stdout } = await this.run('list', '--json');
    const listed = stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Listed);
    return Object.fromEntries(
      listed.map(({ folder, path, status }) => [`${folder}/${path}`, status]),
    );
  }

  /** The requests to a page of the peer. */
  asked(page: string): Served[] {
    return this.peer.served.filter(({ target }) => target.startsWith(page));
  }
}

const ENVIRONMENT = { YACY_PASSWORD: 'sécret:"x"' };
export const PASSWORD = ENVIRONMENT.YACY_PASSWORD;

/** The beginning of a picture, followed by every byte. */
export const PNG = Buffer.concat([
  Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
  Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 167 + (i >> 8)) % 256)),
]);
