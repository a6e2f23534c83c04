import type { BoxOptions } from './box.js';
import type { EmbeddedFailure } from './errors.js';

/** What the worker thread is started with. */
export type WorkerStart = BoxOptions;

/** What the worker thread says. */
export type FromWorker =
  | {
      readonly type: 'ready';
      readonly url: string;
      readonly username: string;
      readonly password: string;
    }
  | { readonly type: 'failed'; readonly failure: EmbeddedFailure }
  | {
      readonly type: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly fields: object;
      readonly message: string;
    };

/** What the worker thread is told. */
export interface ToWorker {
  readonly type: 'close';
}
