export type { Clock, Timer } from './lib/clock.js';
export { PeersyncError } from './lib/errors.js';
export type { Logger } from './lib/logger.js';
export type { Credentials } from './peer/auth.js';
export type {
  Citation,
  CitationOptions,
  CitationQuery,
  CitedSentence,
  CitingDocument,
} from './peer/citation.js';
export { PeerClient } from './peer/client.js';
export type { PeerClientOptions } from './peer/client-options.js';
export type { Dialect, DialectName } from './peer/dialects/dialect.js';
export { type Delivered, PeerError, type PeerErrorCode } from './peer/errors.js';
export type { Timeouts } from './peer/exchange-options.js';
export type { EncodedText, Text, TextEncoding, TextSource } from './peer/form.js';
export type { RequestCounts } from './peer/http.js';
export type { Peerdoc, PeerdocOptions, PeerdocQuery } from './peer/peerdoc.js';
export type { PushAnswer, PushItem, PushOptions, PushResult } from './peer/push.js';
export type { ShareOptions, ShareQuery, ShareStream } from './peer/share.js';
export type { Table, TableQuery, TableRow, TableStream } from './peer/table.js';
export type { PeerTables, TableOptions, TableReadOptions } from './peer/tables.js';
