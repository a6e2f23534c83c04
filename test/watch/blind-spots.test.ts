import { describe, expect, it } from 'vitest';
import { BlindSpots } from '../../src/watch/blind-spots.js';
import { FakeClock } from '../support/fake-clock.js';

const EVERY_MS = 60_000;

/** The blind spots of a folder at `/data/inbox`, and what they asked for and said. */
function blindSpots() {
  const clock = new FakeClock();
  const asked: string[] = [];
  const said: string[] = [];
  const hear = (level: string) => (_fields: object, message: string) =>
    void said.push(`${level}: ${message}`);
  const spots = new BlindSpots({
    ...{ folder: 'inbox', root: { real: '/data/inbox' }, clock, everyMs: EVERY_MS },
    problems: { report: (path, { code }) => void said.push(`problem: ${path} ${code}`) },
    log: { debug: hear('debug'), info: hear('info'), warn: hear('warn'), error: hear('error') },
    lookAt: (directory) => void asked.push(directory),
    rescan: () => void asked.push('all'),
  });
  spots.start();
  return { spots, clock, asked, said };
}

describe('the blind spots of a folder', () => {
  it('are none while every directory is watched, and nothing is asked for', async () => {
    const { spots, clock, asked, said } = blindSpots();
    spots.beginScan();
    spots.endScan();
    await clock.advance(10 * EVERY_MS);
    expect([spots.degraded, asked, said]).toEqual([undefined, [], []]);
  });

  it('that can never be watched are a problem, and are looked at in time whenever they were met', async () => {
    const { spots, clock, asked, said } = blindSpots();
    spots.met('/data/inbox/a\\b', 'NOT_WATCHABLE');
    spots.met('/data/inbox/d/c\\d', 'NOT_WATCHABLE');
    spots.met('/data/inbox/a\\b', 'NOT_WATCHABLE');
    expect(said[0]).toBe('problem: /data/inbox/a\\b NOT_WATCHABLE');
    await clock.advance(EVERY_MS - 1);
    expect(asked).toEqual([]);
    await clock.advance(1);
    expect(asked).toEqual(['a\\b', 'd/c\\d']);
    await clock.advance(EVERY_MS);
    expect(asked).toHaveLength(2);
    spots.met('/data/inbox/a\\b', 'NOT_WATCHABLE');
    await clock.advance(EVERY_MS);
    expect(asked).toEqual(['a\\b', 'd/c\\d', 'a\\b']);
    expect(spots.degraded).toBeUndefined();
  });

  it.each(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM'])(
    'for the limit %s degrade the folder to scans, which is said once',
    async (code) => {
      const { spots, clock, asked, said } = blindSpots();
      spots.beginScan();
      for (const name of ['a', 'b', 'c']) spots.met(`/data/inbox/${name}`, code);
      spots.endScan();
      expect(spots.degraded).toMatchObject({ code: 'WATCH_LIMIT' });
      expect(said).toEqual([expect.stringMatching(/^error: inbox: The system's limit/)]);
      await clock.advance(3 * EVERY_MS);
      expect(asked).toEqual(['all', 'all', 'all']);
    },
  );

  it('are over once a full scan met no limit, and not before', async () => {
    const { spots, clock, asked, said } = blindSpots();
    spots.met('/data/inbox/a', 'ENOSPC');
    spots.beginScan();
    spots.met('/data/inbox/b', 'ENOSPC');
    spots.endScan();
    expect(spots.degraded).toBeDefined();
    spots.beginScan();
    expect(spots.degraded).toBeDefined();
    spots.endScan();
    expect(spots.degraded).toBeUndefined();
    expect(said.at(-1)).toBe('info: inbox: all directories are watched again.');
    await clock.advance(EVERY_MS);
    expect(asked).toEqual([]);
    spots.met('/data/inbox/a', 'ENOSPC');
    expect(said.filter((line) => line.startsWith('error'))).toHaveLength(2);
  });

  it('are not for a directory that may not be read: its listing says so', async () => {
    const { spots, clock, asked, said } = blindSpots();
    spots.met('/data/inbox/a', 'EACCES');
    await clock.advance(EVERY_MS);
    expect([spots.degraded, asked, said]).toEqual([undefined, [], []]);
  });

  it('ask for nothing any more when they are stopped', async () => {
    const { spots, clock, asked } = blindSpots();
    spots.met('/data/inbox/a', 'ENOSPC');
    await clock.advance(EVERY_MS);
    spots.stop();
    await clock.advance(10 * EVERY_MS);
    expect([asked, clock.waiting]).toEqual([['all'], 0]);
  });
});
