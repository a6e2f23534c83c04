import { DIALECT_NAMES, type DialectName } from '../peer/dialect.js';
import type { State, StateView } from '../state/state.js';

const META = 'dialect';

/** What an earlier run found out about the peer at this address. */
export function rememberedDialect(state: Pick<StateView, 'meta'>, url: string): DialectName | undefined {
  const kept = state.meta(META);
  if (typeof kept !== 'object' || kept === null || !('url' in kept) || kept.url !== url) return undefined;
  return DIALECT_NAMES.find((name) => name === kept.dialect);
}

/** For later runs; to be committed. */
export function rememberDialect(state: Pick<State, 'setMeta'>, url: string, dialect: DialectName): void {
  state.setMeta(META, { url, dialect });
}
