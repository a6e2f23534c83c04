import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readCa } from '../../src/config/ca.js';
import { PeerDialect, PeerKind } from '../../src/daemon/configured-peer.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { DialectName } from '../../src/peer/dialects/dialect.js';
import { rememberedDialect, rememberedEmbedded } from '../../src/peer/remembered.js';
import { EMBEDDED_META } from '../../src/report/status.js';
import type { Json } from '../../src/state/rows.js';
import { makeCertificate } from '../support/certificate.js';
import { FakeClock } from '../support/fake-clock.js';
import { failing } from '../support/fake-peer.js';
import { temporaryDirectory } from '../support/temp.js';

describe('a CA file', () => {
  const { cert, key } = makeCertificate();
  const bundle = `# ours - and theirs\n${cert}\n# an older one\n${makeCertificate().cert}`;

  it.each([
    ['one certificate', cert, undefined],
    ['a bundle with words between', bundle, undefined],
    ['another label', cert.replaceAll('CERTIFICATE', 'TRUSTED CERTIFICATE'), undefined],
    ['nothing', '', 'no certificate'],
    ['a key', key, 'no certificate'],
    ['half of one', cert.slice(0, cert.length / 2), 'damaged or cut off'],
    ['half of the second', bundle.slice(0, -100), 'damaged or cut off'],
    ['one with a hole', cert.replace(/\n.{20}/, '\n'), 'damaged or cut off'],
  ])('with %s is taken as it is, or refused', async (_, text, wrong) => {
    const path = join(temporaryDirectory(), 'ca.pem');
    writeFileSync(path, text);
    if (wrong === undefined) expect(await readCa(path, 'peer.tls.ca')).toBe(text);
    else {
      const message: unknown = expect.stringContaining(wrong);
      await expect(readCa(path, 'peer.tls.ca')).rejects.toMatchObject({
        code: 'CONFIG_CA',
        message,
        exitCode: 2,
      });
    }
  });
});

describe('the dialect of the peer', () => {
  const url = 'http://peer.example';
  const going = new AbortController().signal;

  function setUp(configured: DialectName | 'auto', dialect?: DialectName) {
    const clock = new FakeClock();
    const meta = new Map<string, Json>();
    const logged: string[] = [];
    const client = {
      dialect,
      asked: 0,
      speaks: 'yacy' as DialectName | Error,
      async detect() {
        this.asked += 1;
        if (this.speaks instanceof Error) throw this.speaks;
        this.dialect = this.speaks;
        return this.speaks;
      },
    };
    const peer = new PeerDialect({
      configured,
      url,
      client,
      clock,
      queue: { run: (_, work) => work(new AbortController().signal) },
      state: {
        meta: (name) => meta.get(name),
        setMeta: (name, value) => void meta.set(name, value ?? null),
        commit: async () => {},
      },
      log: { ...silentLogger, warn: (_, message) => void logged.push(message) },
      onChange: () => void logged.push('changed'),
    });
    return { client, clock, peer, meta, logged };
  }

  it('is found out and remembered with the address', async () => {
    const { client, peer, meta } = setUp('auto');
    expect(peer.current).toBeUndefined();
    expect(await peer.known(going)).toBe(true);
    expect([peer.current?.name, client.asked]).toEqual(['yacy', 1]);
    expect(rememberedDialect(meta.get('dialect'), url)).toBe('yacy');
    expect(rememberedDialect(meta.get('dialect'), 'http://another.example')).toBeUndefined();
  });

  it('is used without a question where it is remembered or configured', async () => {
    for (const { client, peer } of [setUp('auto', 'standard'), setUp('standard', 'standard')]) {
      expect(await peer.known(going)).toBe(true);
      expect([peer.current?.name, client.asked]).toEqual(['standard', 0]);
    }
    const { client, peer } = setUp('standard', 'standard');
    expect([await peer.redetect(), client.asked]).toEqual([false, 0]);
  });

  it('is asked for again until the peer answers, and not once it is time to stop', async () => {
    const stopping = new AbortController();
    const [one, other] = [setUp('auto'), setUp('auto')];
    for (const { client } of [one, other]) client.speaks = failing('PEER_ANSWER');
    const known = one.peer.known(going);
    await one.clock.advance(60_000);
    expect(one.client.asked).toBeGreaterThan(3);
    one.client.speaks = 'standard';
    await one.clock.advance(60_000);
    expect(await known).toBe(true);
    const waiting = other.peer.known(stopping.signal);
    await other.clock.advance(500);
    stopping.abort();
    expect(await waiting).toBe(false);
  });

  it('that answers do not fit is asked for again, once a minute at most; another one is logged and stored', async () => {
    const { client, clock, peer, logged, meta } = setUp('auto', 'yacy');
    expect(await peer.redetect()).toBe(false);
    client.speaks = 'standard';
    expect(await peer.redetect()).toBe(false);
    expect(client.asked).toBe(1);
    await clock.advance(61_000);
    // Somebody set the clock, which is not time that passed.
    clock.set(-86_400_000);
    expect(await peer.redetect()).toBe(true);
    expect(peer.current?.name).toBe('standard');
    expect(logged).toEqual([
      expect.stringContaining('speaks standard now, no longer yacy'),
      'changed',
    ]);
    expect(meta.get('dialect')).toEqual({ url, dialect: 'standard' });
  });
});

describe('whether the peer is an embedded one', () => {
  const url = 'http://peer.example';

  function setUp(kept?: boolean) {
    const clock = new FakeClock();
    const meta = new Map<string, Json>();
    if (kept !== undefined) meta.set(EMBEDDED_META, { url, isEmbedded: kept });
    const logged: string[] = [];
    const client = {
      isEmbedded: undefined as boolean | undefined,
      answers: undefined as boolean | undefined,
      asked: 0,
      async ping() {
        this.asked += 1;
        if (this.answers === undefined) throw failing('PEER_UNREACHABLE');
        this.isEmbedded = this.answers;
        return { ms: 1 };
      },
    };
    const kind = new PeerKind({
      url,
      client,
      clock,
      dialect: { known: async () => true },
      queue: { run: (_, work) => work(new AbortController().signal) },
      state: {
        meta: (name) => meta.get(name),
        setMeta: (name, value) => void meta.set(name, value ?? null),
        commit: async () => {},
      },
      onEmbedded: () => void logged.push('embedded'),
      onFailure: (error) => void logged.push(String(error)),
      signal: new AbortController().signal,
    });
    const remembered = () => rememberedEmbedded(meta.get(EMBEDDED_META), url);
    return { client, clock, kind, remembered, logged };
  }

  it('is unknown while the peer is away, then detected, reported and stored', async () => {
    const { client, clock, kind, remembered, logged } = setUp();
    expect([client.asked, kind.get()]).toEqual([0, undefined]);
    await clock.advance(600_000);
    expect([kind.isEmbedded, remembered(), logged]).toEqual([undefined, undefined, []]);
    expect(client.asked).toBeGreaterThan(3);
    client.answers = true;
    await clock.advance(60_000);
    await kind.asked;
    expect([kind.isEmbedded, remembered(), logged]).toEqual([true, true, ['embedded']]);
  });

  it('is not believed of an earlier run: another peer may stand there by now', async () => {
    const { client, kind, remembered, logged } = setUp(true);
    expect(kind.get()).toBeUndefined();
    client.answers = false;
    await kind.asked;
    expect([kind.isEmbedded, remembered(), logged]).toEqual([false, false, []]);
  });
});
