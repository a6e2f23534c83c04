import type { Trouble } from '../state/entry.js';

/** Where an address leads: into the network around the peer, or into the world. */
export type Reach = 'local' | 'global';

/** After so many pushes that led to nothing it is certain enough. */
export const GATE_ATTEMPTS = 2;

const LOCAL_SCHEME = /^(file|smb):/i;
const HOST = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@?#]*@)?(\[[^\]]*\]|[^/:?#]*)/i;
const LOCAL_IP =
  /^(127\.|10\.|192\.168\.|169\.254\.|0\.|172\.(1[6-9]|2\d|3[01])\.|\[(::1?\]|f[cd]|fe[89ab]))/i;
/** What is pushed within this time is pushed at the same time, in ms. */
const SAME_TIME_MS = 60_000;
/** Endings of names that no public server knows. */
const LOCAL_NAME = /(^|\.)(localhost|local|internal|intranet|lan|corp|home|invalid|test|localdomain)$/i;

/** By the address alone: no name is looked up. */
export function reachOf(url: string): Reach {
  if (LOCAL_SCHEME.test(url)) return 'local';
  const host = HOST.exec(url)?.[1] ?? '';
  if (LOCAL_IP.test(host) || LOCAL_NAME.test(host)) return 'local';
  const isSingleLabel = !host.includes('.') && !host.startsWith('[');
  return isSingleLabel ? 'local' : 'global';
}

/**
 * Finds out whether the peer drops documents because of their addresses.
 *
 * YaCy belongs to a network of one reach: `global` (its default: the addresses of the world) or `local` (an intranet).
 * It accepts documents of the other reach as well, and drops them without a word. What can be seen of that: documents of
 * one reach are shown, and none of the other, though they were pushed no later (a minute more or less).
 */
export class DomainGate {
  /** When the latest document that was shown was pushed, by its reach, in ms since the epoch. */
  readonly #shown = new Map<Reach, number>();

  /** The peer shows the document of this address, pushed at this time. */
  saw(url: string, pushedAt: number): void {
    const reach = reachOf(url);
    this.#shown.set(reach, Math.max(pushedAt, this.#shown.get(reach) ?? 0));
  }

  /**
   * Whether that explains why this document is not shown.
   *
   * @param pushedAt when it was pushed first, in ms since the epoch
   */
  explains(url: string, pushedAt: number): boolean {
    const reach = reachOf(url);
    const others = this.#shown.get(reach === 'local' ? 'global' : 'local');
    return !this.#shown.has(reach) && others !== undefined && others >= pushedAt - SAME_TIME_MS;
  }

  trouble(url: string): Trouble {
    const [own, other] = reachOf(url) === 'local' ? ['local', 'public'] : ['public', 'local'];
    return {
      code: 'DOMAIN_GATE',
      message:
        `The peer accepted it and never shows it, while it shows documents with ${other} addresses: it drops documents ` +
        `with ${own} addresses, such as this one (${url}), without a word.`,
      hint: gateHint(reachOf(url)),
    };
  }
}

/** What to do about a gate that drops addresses of this reach. */
export function gateHint(reach: Reach): string {
  const mend =
    reach === 'local'
      ? 'give the folder a public `url`, or let YaCy take local addresses (network.unit.domain = local or any, its intranet mode)'
      : 'give the folder a local `url`, or let YaCy take public addresses (network.unit.domain = global or any, not its intranet mode)';
  return `A YaCy network takes either public or local addresses: ${mend}; then \`peersync retry\` the file.`;
}
