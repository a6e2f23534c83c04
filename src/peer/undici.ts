import { createRequire } from 'node:module';
import type * as undici from 'undici';

// The parts of undici that carry a request. Its main module would load ninety files more (fetch, WebSocket, caches, test
// doubles), which cost a start as much as all of Node does, and the daemon 9 MB as long as it lives.
const require = createRequire(import.meta.url);

export type Client = undici.Client;
export const Client = require('undici/lib/dispatcher/client.js') as typeof undici.Client;
export const buildConnector = require('undici/lib/core/connect.js') as typeof undici.buildConnector;
export const errors = require('undici/lib/core/errors.js') as typeof undici.errors;
