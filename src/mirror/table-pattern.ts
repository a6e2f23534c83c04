import type { TableMirrorConfig } from '../config/config.js';
import { tablePattern } from '../config/table-pattern.js';
import { MirrorError } from './errors.js';
import type { Identity } from './life.js';
import type { Followed, FollowOptions, Mirror, MirrorTools } from './parts.js';
import { quoted } from './quoted.js';
import { throughDoor } from './through-door.js';

/** A peer that lists more is not listing what a person made. */
const MOST_TABLES = 10_000;

/**
 * A pattern over the tables of the peer. A run asks for the list of tables; each that matches is a mirror of its own, and stays
 * one when it is not on the list any more, until a person accepts that.
 */
export class TablePatternMirror implements Mirror {
  readonly name: string;
  readonly identity: Identity;
  readonly every: number;
  readonly #settings: TableMirrorConfig;
  readonly #pattern: RegExp;
  readonly #tools: Pick<MirrorTools, 'peer' | 'door'>;
  readonly #onList: (tables: readonly string[]) => void;

  /** @param onList hears of all tables of the peer, each time they were asked for */
  constructor(
    settings: TableMirrorConfig,
    tools: Pick<MirrorTools, 'peer' | 'door'>,
    onList: (tables: readonly string[]) => void,
  ) {
    this.name = settings.name;
    this.identity = { kind: 'table', path: settings.path };
    this.every = settings.every;
    this.#settings = settings;
    this.#pattern = tablePattern(settings.table);
    this.#tools = tools;
    this.#onList = onList;
  }

  async follow(_before: unknown, { signal }: FollowOptions): Promise<Followed> {
    const { door, peer } = this.#tools;
    const tables = await throughDoor(door, signal, (signal) => peer.tables.list({ signal }));
    const matching = tables.filter((table) => this.#pattern.test(table)).length;
    if (matching > MOST_TABLES) {
      throw new MirrorError('MIRROR_TOO_MANY', {
        what: quoted(this.#settings.table),
        detail: `${MOST_TABLES}`,
      });
    }
    this.#onList(tables);
    const many = matching === 1 ? '1 table' : `${matching} tables`;
    const notes = [matching === 0 ? 'No table of the peer matches it.' : `Follows ${many} of the peer.`];
    return { kind: 'followed', changed: false, facts: { notes } };
  }
}
