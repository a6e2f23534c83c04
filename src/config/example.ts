/** The configuration that `peersync init` writes: what one usually changes, the rest left to its default. */
export function exampleConfig(): string {
  return `${JSON.stringify(EXAMPLE, null, 2)}\n`;
}

const EXAMPLE = {
  peer: { url: 'embedded', dialect: 'auto' },
  folders: [
    { name: 'inbox', path: './data/inbox', collection: 'inbox', url: 'https://files.example.org/inbox/' },
  ],
  state: { dir: './data/state' },
  mirror: { root: './data/mirror' },
  push: {
    maxItems: 50,
    maxBytes: '8 MiB',
    linger: '250ms',
    requestsPerSecond: 20,
    concurrency: 4,
    attempts: 5,
  },
  confirm: { timeout: '10m', requestsPerSecond: 200 },
};
