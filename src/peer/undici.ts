/// <reference path="./undici-files.d.ts" />
import type * as undici from 'undici';
import connect from 'undici/lib/core/connect.js';
import undiciErrors from 'undici/lib/core/errors.js';
import UndiciClient from 'undici/lib/dispatcher/client.js';

// The parts of undici that carry a request. Its main module would load ninety files more (fetch, WebSocket, caches, test
// doubles), which cost a start as much as all of Node does, and the daemon 9 MB as long as it lives.

export const Client: typeof undici.Client = UndiciClient;
export const buildConnector: typeof undici.buildConnector = connect;
export const errors: typeof undici.errors = undiciErrors;
