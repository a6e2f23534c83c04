import { describe, expect, it } from 'vitest';
import { DomainGate, reachOf } from '../../src/uplink/failure-attribution.js';

describe('an address', () => {
  it.each([
    'file:///srv/a.txt',
    'http://localhost/a',
    'http://127.0.0.1:8090/a',
    'http://10.1.2.3/a',
    'http://172.16.0.1/a',
    'http://192.168.1.1/a',
    'http://[::1]/a',
    'http://[fd12::1]/a',
    'http://vault.local/a',
    'https://wiki.internal/a',
    'http://nas/a',
    'http://user@nas:80/a',
  ])('is local: %s', (url) => expect(reachOf(url)).toBe('local'));

  it.each([
    'http://example.org/a',
    'https://files.example.org:8443/local/a',
    'ftp://ftp.example.net/a',
    'http://172.32.0.1/a',
    'http://8.8.8.8/a',
    'http://[2001:db8::1]/a',
    'http://home.arpa/a',
    'http://local.example.org/a',
  ])('is public: %s', (url) => expect(reachOf(url)).toBe('global'));
});

describe('the gate', () => {
  const [hidden, shown] = ['http://vault.local/a', 'http://example.org/a'];

  it('explains what is not shown while documents of the other reach are, also for a later run', () => {
    const gate = new DomainGate();
    expect(gate.explains(hidden)).toBe(false);
    expect([gate.saw(shown), gate.saw(`${shown}b`)]).toEqual([true, false]);
    for (const each of [gate, new DomainGate(gate.kept)]) {
      expect(each.explains(hidden)).toBe(true);
      expect(each.explains('http://example.org/b')).toBe(false);
    }
  });

  it('explains nothing where a document of the same reach was shown', () => {
    const gate = new DomainGate();
    gate.saw(shown);
    gate.saw('http://other.local/b');
    expect(gate.explains(hidden)).toBe(false);
  });

  it('is told with the setting that opens it', () => {
    const { code, message, hint } = new DomainGate().trouble(hidden);
    expect(code).toBe('DOMAIN_GATE');
    expect(message).toContain(hidden);
    expect(hint).toContain('network.unit.domain');
  });
});
