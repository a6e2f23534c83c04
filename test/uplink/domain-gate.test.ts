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
  const LATE = 1_000_000;
  const [hidden, shown] = ['http://vault.local/a', 'http://example.org/a'];

  it('explains what is not shown while documents of the other reach are, that were pushed no earlier', () => {
    const gate = new DomainGate();
    expect(gate.explains(hidden, LATE)).toBe(false);
    gate.saw(shown, LATE - 600_000);
    expect(gate.explains(hidden, LATE)).toBe(false);
    gate.saw(shown, LATE);
    expect(gate.explains(hidden, LATE)).toBe(true);
    expect(gate.explains('http://example.org/b', LATE)).toBe(false);
  });

  it('explains nothing where a document of the same reach was shown', () => {
    const gate = new DomainGate();
    gate.saw(shown, LATE);
    gate.saw('http://other.local/b', LATE - 600_000);
    expect(gate.explains(hidden, LATE)).toBe(false);
  });

  it('is told with the setting that opens it', () => {
    const { code, message, hint } = new DomainGate().trouble(hidden);
    expect(code).toBe('DOMAIN_GATE');
    expect(message).toContain(hidden);
    expect(hint).toContain('network.unit.domain');
  });
});
