import { describe, expect, it } from 'vitest';
import { PeerDialect } from '../../src/daemon/configured-peer.js';
import type { Logger } from '../../src/lib/logger.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { DialectName } from '../../src/peer/dialect.js';
import { rememberedDialect } from '../../src/peer/dialect.js';
import type { Json } from '../../src/state/journal.js';
import { FakeClock } from '../support/fake-clock.js';
import { failing } from '../support/world.js';

const URL_ = 'http://peer.example';

function setting(configured: DialectName | 'auto', remembered?: DialectName) {
  const clock = new FakeClock();
  const meta = new Map<string, Json>();
  const said: string[] = [];
  const say = (_: unknown, message: string) => void said.push(message);
  const client = {
    dialect: configured === 'auto' ? remembered : configured,
    asked: 0,
    speaks: 'yacy' as DialectName | Error,
    async detect() {
      this.asked += 1;
      if (this.speaks instanceof Error) throw this.speaks;
      this.dialect = this.speaks;
      return this.speaks;
    },
  };
  let changes = 0;
  const dialect = new PeerDialect({
    configured,
    url: URL_,
    client,
    clock,
    queue: { run: (_, work) => work(new AbortController().signal) },
    state: {
      meta: (name) => meta.get(name),
      setMeta: (name, value) => void meta.set(name, value ?? null),
      commit: async () => {},
    },
    log: { ...silentLogger, info: say, warn: say } as Logger,
    onChange: () => {
      changes += 1;
    },
  });
  return { client, clock, dialect, meta, said, changes: () => changes };
}
const going = new AbortController().signal;

describe('the dialect of the peer', () => {
  it('is asked for again a minute later, also where the clock was set back meanwhile', async () => {
    const { client, clock, dialect } = setting('auto', 'standard');
    client.speaks = 'standard';
    await dialect.misfits();
    await dialect.misfits();
    expect(client.asked).toBe(1);
    await clock.advance(60_000);
    clock.set(-86_400_000);
    await dialect.misfits();
    expect(client.asked).toBe(2);
  });

  it('is found out and remembered with the address', async () => {
    const { client, dialect, meta } = setting('auto');
    expect(dialect.current).toBeUndefined();
    expect(await dialect.known(going)).toBe(true);
    expect(dialect.current?.name).toBe('yacy');
    expect(rememberedDialect(meta.get('dialect'), URL_)).toBe('yacy');
    expect(rememberedDialect(meta.get('dialect'), 'http://another.example')).toBeUndefined();
    expect(client.asked).toBe(1);
  });

  it('is used without a question where it is remembered or configured', async () => {
    for (const { client, dialect } of [setting('auto', 'standard'), setting('standard')]) {
      expect(await dialect.known(going)).toBe(true);
      expect(dialect.current?.name).toBe('standard');
      expect(client.asked).toBe(0);
    }
  });

  it('is asked for again until the peer answers, and not once it is time to stop', async () => {
    const { client, clock, dialect } = setting('auto');
    client.speaks = failing('PEER_ANSWER');
    let known: boolean | undefined;
    void dialect.known(going).then((it) => {
      known = it;
    });
    await clock.advance(60_000);
    expect(known).toBeUndefined();
    expect(client.asked).toBeGreaterThan(3);
    client.speaks = 'standard';
    await clock.advance(60_000);
    expect(known).toBe(true);

    const other = setting('auto');
    other.client.speaks = failing('PEER_ANSWER');
    const stopping = new AbortController();
    const waiting = other.dialect.known(stopping.signal);
    await other.clock.advance(500);
    stopping.abort();
    expect(await waiting).toBe(false);
  });

  it('that answers do not fit is asked for again, at most once a minute; another one is said and remembered', async () => {
    const { client, clock, dialect, said, meta, changes } = setting('auto', 'yacy');
    expect(await dialect.misfits()).toBe(false);
    client.speaks = 'standard';
    expect(await dialect.misfits()).toBe(false);
    expect(client.asked).toBe(1);
    await clock.advance(61_000);
    expect(await dialect.misfits()).toBe(true);
    expect(dialect.current?.name).toBe('standard');
    expect(said).toEqual([expect.stringContaining('speaks standard now, no longer yacy')]);
    expect(meta.get('dialect')).toEqual({ url: URL_, dialect: 'standard' });
    expect(changes()).toBe(1);
  });

  it('that is configured is never doubted', async () => {
    const { client, dialect } = setting('standard');
    expect(await dialect.misfits()).toBe(false);
    expect(client.asked).toBe(0);
  });
});
