import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FolderConfig } from '../../src/config/config.js';
import { fingerprintNow } from '../../src/content/reader.js';
import { type Clock, systemClock } from '../../src/lib/clock.js';
import type { Encoding } from '../../src/lib/file.js';
import type { Logger } from '../../src/lib/logger.js';
import type { Entry, Trouble } from '../../src/state/entry.js';
import { State } from '../../src/state/state.js';
import { listHere } from '../../src/watch/lister.js';
import { Watcher, type WatcherOptions } from '../../src/watch/watcher.js';
import { afterwards } from '../support/afterwards.js';
import { temporaryDirectory } from '../support/temp.js';

/** Long enough that a test can write twice within it, short enough to wait for. */
export const SETTLE_MS = 150;

export function folderOf(path: string, changes: Partial<FolderConfig> = {}): FolderConfig {
  return {
    name: 'inbox',
    path,
    collection: 'inbox',
    url: 'https://files.example.org/inbox/',
    include: ['*'],
    ignore: ['.git', '*.part'],
    rules: [],
    settle: SETTLE_MS,
    maxFileSize: 1_048_576,
    followSymlinks: false,
    ...changes,
  };
}

export function refusesBinary(encoding: Encoding): Trouble | undefined {
  return encoding === 'binary' ? { code: 'NOT_TEXT', message: 'Not text.', hint: 'None.' } : undefined;
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
}

/** A folder on disk, a real state and a watcher over them; stopped after the test. */
export class WatchWorld {
  readonly root: string;
  readonly lines: LogLine[] = [];
  readonly log: Logger;
  #started: Started[] = [];

  constructor() {
    const top = temporaryDirectory();
    this.root = join(top, 'inbox');
    mkdirSync(this.root);
    const say = (level: LogLine['level']) => (_fields: object, message: string) => {
      this.lines.push({ level, message });
    };
    this.log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') };
    afterwards('test', () => this.stop());
  }

  write(path: string, content: string | Uint8Array = `content of ${path}`): string {
    const absolute = join(this.root, path);
    mkdirSync(dirname(absolute), { recursive: true });
    writeFileSync(absolute, content);
    return absolute;
  }

  append(path: string, content: string): void {
    appendFileSync(join(this.root, path), content);
  }

  /** Starts a watcher; give the state of an earlier one to go on with it. */
  async start(
    options: {
      readonly folders?: readonly FolderConfig[];
      readonly state?: State;
      readonly hints?: boolean;
      readonly clock?: Clock;
    } & Partial<
      Pick<WatcherOptions, 'openEvents' | 'policy' | 'accepts' | 'onStanding' | 'list' | 'readGroup'>
    > = {},
  ): Promise<Started> {
    const clock = options.clock ?? systemClock;
    const state = options.state ?? (await State.open(temporaryDirectory(), { clock, log: this.log }));
    const watcher = new Watcher({
      folders: options.folders ?? [folderOf(this.root)],
      state,
      clock,
      log: this.log,
      accepts: options.accepts ?? refusesBinary,
      hints: options.hints ?? true,
      rescanMs: 3_600_000,
      policy: { rootCheckMs: 100, ...options.policy },
      ...(options.openEvents ? { openEvents: options.openEvents } : {}),
      list: options.list ?? listHere,
      readGroup: options.readGroup ?? (async (orders) => orders.map(fingerprintNow)),
      ...(options.onStanding ? { onStanding: options.onStanding } : {}),
    });
    watcher.start();
    const started = new Started(watcher, state);
    this.#started.push(started);
    return started;
  }

  said(part: string, level?: LogLine['level']): number {
    return this.lines.filter((l) => l.message.includes(part) && (level === undefined || l.level === level))
      .length;
  }

  async stop(): Promise<void> {
    const started = this.#started.splice(0);
    for (const { watcher } of started) await watcher.stop();
    for (const state of new Set(started.map((s) => s.state))) await state.close();
  }
}

export class Started {
  constructor(
    readonly watcher: Watcher,
    readonly state: State,
  ) {}

  get(path: string, folder = 'inbox'): Entry | undefined {
    return this.state.get(folder, path);
  }

  status(path: string, folder = 'inbox'): Entry['status'] | undefined {
    return this.get(path, folder)?.status;
  }

  sha(path: string, folder = 'inbox'): string | undefined {
    const version = this.get(path, folder)?.version;
    return version !== undefined && 'sha256' in version ? version.sha256 : undefined;
  }
}
