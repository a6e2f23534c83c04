import type { Socket } from 'node:net';

/** The part of an exchange that the end of its connection concerns. */
export interface EndingExchange {
  /** Whether a reset of the connection leaves its answer incomplete. */
  readonly failsOnReset: boolean;
  /** Reads the rest of the answer. No more of it will arrive. */
  takeRest(): void;
}

/** Returns the exchange that the connection carries now. */
type CurrentExchange = () => EndingExchange | undefined;

/**
 * Works around three defects of undici 7 (up to 7.30.2, its newest version) with an answer that is
 * under way when its connection ends:
 *
 * - The peer closes the connection while the answer is paused. If the answer has no length or says
 *   `Connection: close`, an assertion fails in a listener and the process ends. Any other answer
 *   fails, although all of it came. The listener of `end` takes the rest of the answer first.
 * - The connection is reset while such an answer is paused: the same assertion ends the process.
 * - The connection is reset in the middle of an answer without a length: undici takes the answer
 *   for whole. undici treats a reset so by its code, and fails the exchange for any other error.
 *   The listener of `error` therefore removes the code.
 *
 * Must be called before undici gets the socket, so that these listeners run before those of undici.
 *
 * undici 8 needs Node 22.19. Its version 8.13 no longer ends the process. An answer still fails, or
 * is taken for whole, as above. Remove a listener when `test/peer/undici-defects.test.ts` and
 * `test/peer/stream.test.ts` pass without it.
 */
export function workAroundDefects(socket: Socket, exchange: CurrentExchange): void {
  socket.on('end', () => exchange()?.takeRest());
  socket.on('error', (error: NodeJS.ErrnoException) => {
    const isReset = error.code === 'ECONNRESET';
    if (isReset && exchange()?.failsOnReset) error.code = undefined;
  });
}
