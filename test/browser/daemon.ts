import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Running } from '../support/cli.js';
import { type ConfigParts, writeConfig } from '../support/config.js';
import { PeerProcess } from '../support/peer-process.js';
import { temporaryDirectory } from '../support/temp.js';

export interface DaemonOptions extends Omit<ConfigParts, 'peer'> {
  /** In place of the peer's own address. */
  peerUrl?(peer: PeerProcess): Promise<string>;
  /** What the page asks for. */
  readonly token?: string;
}

/** A daemon with a page, and its peer, each in a process of its own. */
export class Daemon {
  readonly directory: string;
  peer: PeerProcess;
  running: Running;
  url = '';
  readonly #config: string;

  private constructor(directory: string, config: string, peer: PeerProcess) {
    this.directory = directory;
    this.#config = config;
    this.peer = peer;
    this.running = new Running(['run', '-c', config]);
  }

  static async start({ peerUrl, token, ...parts }: DaemonOptions = {}): Promise<Daemon> {
    const directory = temporaryDirectory();
    const peer = await PeerProcess.start(join(directory, 'peer'));
    const url = peerUrl === undefined ? peer.url : await peerUrl(peer);
    const tokenFile = join(directory, 'page-token');
    if (token !== undefined) writeFileSync(tokenFile, token, { mode: 0o600 });
    const config = writeConfig(directory, {
      ...parts,
      peer: { ...peer.section(url), dialect: 'standard' },
      status: { listen: '127.0.0.1:0', ...(token === undefined ? {} : { token: { file: tokenFile } }) },
    });
    const daemon = new Daemon(directory, config, peer);
    await daemon.#listens();
    return daemon;
  }

  async #listens(): Promise<void> {
    const said = /status page at (http:\/\/[^"\s]+)/;
    await this.running.says(said);
    this.url = said.exec(this.running.stdout + this.running.stderr)?.[1] ?? '';
  }

  /** Puts a file into a folder. @returns its path */
  drop(file: string, content = `${file} is a file of a test\n`): string {
    const path = join(this.directory, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  /** The daemon dies; it can come back where it was. */
  async die(): Promise<void> {
    await this.running.kill('SIGKILL');
  }

  async comeBack(): Promise<void> {
    const config = JSON.parse(readFileSync(this.#config, 'utf8'));
    config.status.listen = new URL(this.url).host;
    writeFileSync(this.#config, JSON.stringify(config));
    this.running = new Running(['run', '-c', this.#config]);
    await this.#listens();
  }

  /** The peer dies; it can come back where it was. */
  async losePeer(): Promise<void> {
    await this.peer.running.kill('SIGKILL');
  }

  async regainPeer(): Promise<void> {
    this.peer = await PeerProcess.start(this.peer.data, { port: Number(new URL(this.peer.url).port) });
  }
}
