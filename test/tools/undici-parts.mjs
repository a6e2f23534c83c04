// The parts of undici that the program imports. The package as a whole also loads fetch, WebSocket,
// caches and mocks, which take 5 MB of memory. The bundle has this module in its place; an import
// of anything else fails when it is built.
export { default as buildConnector } from 'undici/lib/core/connect.js';
export { default as errors } from 'undici/lib/core/errors.js';
export { default as Client } from 'undici/lib/dispatcher/client.js';
