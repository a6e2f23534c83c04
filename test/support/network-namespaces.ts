import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { afterwards } from './afterwards.js';

function ip(...args: readonly string[]): boolean {
  return spawnSync('ip', args, { stdio: 'ignore' }).status === 0;
}

/** The names of links and namespaces begin with it: the process that made them, and a number. */
const NAME = /^ps(?<pid>\d{1,7})x[0-9a-f]{2}/;

/** Whether a process lives, perhaps one of another user. */
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Removes what test runs have left that were killed. */
function removeLeftovers(): void {
  for (const what of ['netns', 'link']) {
    const { stdout } = spawnSync('ip', ['-brief', what, 'show'], { encoding: 'utf8' });
    for (const line of (stdout ?? '').split('\n')) {
      const name = line.split(/[\s@]/, 1)[0] ?? '';
      const pid = NAME.exec(name)?.groups?.pid;
      // A link goes with the other end of it, and with its namespace.
      if (pid !== undefined && !lives(Number(pid))) ip(what, 'del', name);
    }
  }
}

/**
 * Machines that share a network, as namespaces of this one. Linux only, and only for root.
 *
 * This machine has `address` in their network.
 */
export class NetworkNamespaces {
  readonly address: string;

  private constructor(
    private readonly name: string,
    private readonly net: string,
    private readonly count: number,
  ) {
    this.address = `${net}.254`;
  }

  /** @returns undefined where there are no namespaces, or the test may not make any */
  static create(count: number): NetworkNamespaces | undefined {
    removeLeftovers();
    const id = randomInt(0xffff);
    const name = `ps${process.pid}x${(id & 255).toString(16).padStart(2, '0')}`;
    const net = `10.${64 + ((id >> 8) % 64)}.${id & 255}`;
    const made = new NetworkNamespaces(name, net, count);
    afterwards('test', () => made.#remove());
    return made.#make() ? made : undefined;
  }

  /** Returns the words before a command that runs in a namespace. @param index from 0 */
  prefix(index: number): readonly [string, ...string[]] {
    return ['ip', 'netns', 'exec', this.#namespace(index)];
  }

  /** Pulls the cable of a namespace, or puts it back. Connections notice nothing. */
  cut(index: number, isCut: boolean): void {
    ip('link', 'set', this.#cable(index), isCut ? 'down' : 'up');
  }

  #make(): boolean {
    const { address, name } = this;
    const isBridged =
      ip('link', 'add', name, 'type', 'bridge') &&
      ip('addr', 'add', `${address}/24`, 'dev', name) &&
      ip('link', 'set', name, 'up');
    return isBridged && this.#indices().every((index) => this.#add(index));
  }

  #add(index: number): boolean {
    const space = this.#namespace(index);
    const cable = this.#cable(index);
    const inside = ['-n', space] as const;
    return (
      ip('netns', 'add', space) &&
      ip('link', 'add', cable, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', space) &&
      ip('link', 'set', cable, 'master', this.name, 'up') &&
      ip(...inside, 'addr', 'add', `${this.net}.${index + 1}/24`, 'dev', 'eth0') &&
      ip(...inside, 'link', 'set', 'eth0', 'up') &&
      ip(...inside, 'link', 'set', 'lo', 'up')
    );
  }

  #remove(): void {
    for (const index of this.#indices()) {
      ip('link', 'del', this.#cable(index));
      ip('netns', 'del', this.#namespace(index));
    }
    ip('link', 'del', this.name);
  }

  #indices(): number[] {
    return Array.from({ length: this.count }, (_, index) => index);
  }

  #namespace(index: number): string {
    return `${this.name}n${index}`;
  }

  #cable(index: number): string {
    return `${this.name}c${index}`;
  }
}
