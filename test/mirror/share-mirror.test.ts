import { describe, expect, it } from 'vitest';
import { Engine, FakePeer } from './engine.js';

describe('a mirrored share', () => {
  it('becomes a file, and an unchanged one keeps its mtime', async () => {
    const peer = new FakePeer();
    const engine = new Engine(peer);
    peer.shares.set('list.txt', { type: 'text/plain', content: 'one\n' });
    await engine.open({ shares: [{ data: 'list.txt' }] });
    expect(await engine.once('list.txt')).toMatchObject({ changed: true, bytes: 4, type: 'text/plain' });
    expect(engine.read('shares/list.txt')).toBe('one\n');
    const before = engine.mtime('shares/list.txt');
    expect(await engine.once('list.txt')).toMatchObject({ changed: false });
    expect(engine.mtime('shares/list.txt')).toBe(before);
    peer.shares.set('list.txt', { type: 'text/plain', content: 'two\n' });
    expect(await engine.once('list.txt')).toMatchObject({ changed: true });
    expect(engine.read('shares/list.txt')).toBe('two\n');
  });
});
