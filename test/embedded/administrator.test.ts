import { describe, expect, it } from 'vitest';
import { Administrator, type Verdict } from '../../src/embedded/administrator.js';
import { FakeClock } from '../support/fake-clock.js';
import { digest } from './support.js';

const PASSWORD = 'correct horse';
const uri = '/api/push_p.json';

function setUp(): {
  clock: FakeClock;
  judge: (authorization?: string, target?: string) => Verdict;
  nonce: () => string;
} {
  const clock = new FakeClock();
  const administrator = new Administrator(PASSWORD, clock);
  const judge = (authorization?: string, target = uri): Verdict =>
    administrator.judge({ method: 'GET', target, authorization });
  const nonce = (): string => {
    const verdict = judge();
    const found = verdict.access === 'denied' ? /nonce="([^"]+)"/.exec(verdict.challenges[0] ?? '')?.[1] : '';
    return found ?? '';
  };
  return { clock, judge, nonce };
}
const isStale = (verdict: Verdict): boolean =>
  verdict.access === 'denied' && (verdict.challenges[0] ?? '').includes('stale=true');

describe('the administrator', () => {
  it('is asked for by Digest with SHA-256, Digest with MD5, and Basic, the best first', () => {
    const { judge } = setUp();
    const verdict = judge();
    expect(verdict.access).toBe('denied');
    const challenges = verdict.access === 'denied' ? verdict.challenges : [];
    expect(challenges[0]).toMatch(
      /^Digest realm="[^"]+", qop="auth", algorithm=SHA-256, nonce="[\w-]+", stale=false/,
    );
    expect(challenges[1]).toMatch(/^Digest .*algorithm=MD5/);
    expect(challenges[2]).toMatch(/^Basic realm="/);
  });

  it.each(['MD5', 'SHA-256'] as const)(
    'is let in by a right digest with %s, and not by a wrong one',
    (algorithm) => {
      const { judge, nonce } = setUp();
      expect(judge(digest({ algorithm, nonce: nonce(), nc: 1, password: PASSWORD, uri })).access).toBe(
        'granted',
      );
      const wrong = judge(digest({ algorithm, nonce: nonce(), nc: 1, password: 'wrong', uri }));
      expect(wrong.access).toBe('denied');
      expect(isStale(wrong)).toBe(false);
    },
  );

  it('is let in by Basic with the right password only', () => {
    const { judge } = setUp();
    const of = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
    expect(judge(of(`admin:${PASSWORD}`)).access).toBe('granted');
    for (const wrong of ['admin:', 'admin:correct', `root:${PASSWORD}`, `admin:${PASSWORD}x`, ''])
      expect(judge(of(wrong)).access).toBe('denied');
  });

  it('may use a nonce many times, in any order, but each count once', () => {
    const { judge, nonce } = setUp();
    const one = nonce();
    const use = (nc: number): Verdict =>
      judge(digest({ algorithm: 'SHA-256', nonce: one, nc, password: PASSWORD, uri }));
    expect([3, 1, 2, 5, 4, 6].map((nc) => use(nc).access)).toEqual(Array(6).fill('granted'));
    for (const nc of [1, 4, 6]) expect(isStale(use(nc))).toBe(true);
    expect(use(0).access).toBe('denied');
  });

  it('gets a new nonce where the old one is five minutes old, without being asked for the password again', () => {
    const { clock, judge, nonce } = setUp();
    const one = nonce();
    const use = (nc: number, password = PASSWORD): Verdict =>
      judge(digest({ algorithm: 'SHA-256', nonce: one, nc, password, uri }));
    return clock
      .advance(299_000)
      .then(() => expect(use(1).access).toBe('granted'))
      .then(() => clock.advance(2_000))
      .then(() => {
        expect(isStale(use(2))).toBe(true);
        expect(isStale(use(2, 'wrong'))).toBe(false);
      });
  });

  it('is not let in with a nonce of another peer, or with one whose uses were forgotten', () => {
    const { judge, nonce } = setUp();
    const foreign = setUp().nonce();
    const use = (one: string): Verdict =>
      judge(digest({ algorithm: 'MD5', nonce: one, nc: 1, password: PASSWORD, uri }));
    expect(use(foreign).access).toBe('denied');
    const first = nonce();
    expect(use(first).access).toBe('granted');
    for (let i = 0; i < 1_000; i += 1) use(nonce());
    expect(isStale(use(first))).toBe(true);
  });

  it('is told of a digest for another address, and of one that cannot be read', () => {
    const { judge, nonce } = setUp();
    const other = digest({ algorithm: 'MD5', nonce: nonce(), nc: 1, password: PASSWORD, uri });
    expect(judge(other, '/api/push_p.xml').access).toBe('malformed');
    expect(judge('Digest username="admin').access).toBe('malformed');
    expect(judge('Digest').access).toBe('denied');
    expect(judge('Bearer x').access).toBe('denied');
    expect(judge(other.replace('qop=auth, ', '')).access).toBe('denied');
  });
});
