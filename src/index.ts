export type { RequestCounts } from './peer/asking.js';
export { PeerClient, type PeerClientOptions } from './peer/client.js';
export type { Credentials } from './peer/digest.js';
export { type Delivered, PeerError, type PeerErrorCode } from './peer/errors.js';
export type { Timeouts } from './peer/http.js';
export type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peer/peerdoc.js';
export type { PushAnswer, PushItem, PushOptions, PushResult } from './peer/push.js';
export type { EncodedText, Text, TextSource } from './peer/text.js';
