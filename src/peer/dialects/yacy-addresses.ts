import type { AddressPolicy } from './dialect.js';

const LOCAL_SCHEME = /^(file|smb):/i;
const HOST = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/@?#]*@)?(\[[^\]]*\]|[^/:?#]*)/i;
const LOCAL_IP =
  /^(127\.|10\.|192\.168\.|169\.254\.|0\.|172\.(1[6-9]|2\d|3[01])\.|\[(::1?\]|f[cd]|fe[89ab]))/i;
/** The endings of host names that public DNS does not know. */
const LOCAL_NAME =
  /(^|\.)(localhost|local|internal|intranet|lan|corp|home|invalid|test|localdomain)$/i;

const WORDS = { local: 'local', global: 'public' } as const;
const OTHER = { local: 'global', global: 'local' } as const;
const MODES = {
  local: 'a YaCy in its usual mode shows public addresses only',
  global: 'a YaCy in intranet mode shows local addresses only',
} as const;

/**
 * The policy of YaCy. A YaCy network is either `global` (the default: public addresses) or `local`
 * (an intranet).
 */
export const yacyAddresses: AddressPolicy = {
  reachOf(url) {
    if (LOCAL_SCHEME.test(url)) return 'local';
    const host = HOST.exec(url)?.[1] ?? '';
    if (LOCAL_IP.test(host) || LOCAL_NAME.test(host)) return 'local';
    const isSingleLabel = !host.includes('.') && !host.startsWith('[');
    return isSingleLabel ? 'local' : 'global';
  },

  probeUrl: (reach) =>
    reach === 'local'
      ? 'http://localhost/peersync-canary/network.txt'
      : 'http://peersync-canary.example.org/network.txt',

  dropped(url) {
    const reach = yacyAddresses.reachOf(url);
    return {
      code: 'DOMAIN_GATE',
      message:
        `The peer never shows it, while it shows documents with ${WORDS[OTHER[reach]]} addresses: it takes no ` +
        `documents with ${WORDS[reach]} addresses, such as this one (${url}).`,
      hint: `${yacyAddresses.hint(reach)} Then \`peersync retry PATH\`.`,
    };
  },

  unseen(url) {
    const reach = yacyAddresses.reachOf(url);
    return {
      code: 'ADDRESSES_UNSEEN',
      message:
        `The peer accepted documents with ${WORDS[reach]} addresses, such as ${url}, and has not shown any yet. It may drop ` +
        `them without a word: ${MODES[reach]}.`,
      hint: `\`peersync check --canary\` shows within seconds whether it does. ${yacyAddresses.hint(reach)} Then \`peersync retry --all\`.`,
    };
  },

  hint(reach) {
    const mend =
      reach === 'local'
        ? 'give the folder a public `url`, or let YaCy take local addresses (network.unit.domain = local or any, its intranet mode)'
        : 'give the folder a local `url`, or let YaCy take public addresses (network.unit.domain = global or any, not its intranet mode)';
    return `A YaCy network takes either public or local addresses: ${mend}.`;
  },
};
