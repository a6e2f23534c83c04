import { describe, expect, it } from 'vitest';
import { type CanaryPeer, type CanaryReport, canaryPlan, pushCanaries } from '../../src/commands/canary.js';
import { checkConfig } from '../../src/config/load.js';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import type { PushItem } from '../../src/peer/push.js';

const BASE = 'https://x.example.org/canary/';
const TEXTS: Readonly<Record<string, string>> = {
  'plain.txt': 'Gulls sleep on one leg and count.',
  'document.pdf': 'Gulls sleep on one leg and count.',
  'greetings.txt': 'Greetings from afar: Grüße aus Łódź und Kraków.',
};

/** A peer that takes files, and shows of each what it is told to. */
function showing(texts: Readonly<Record<string, string>>, words: number, keepsDates = true): CanaryPeer {
  const pushed = new Map<string, PushItem>();
  return {
    dialect: 'yacy',
    detect: async () => 'yacy',
    async push(items) {
      for (const item of items) pushed.set(item.url, item);
      return { results: items.map(() => ({ ok: true })), peerTime: systemClock.now() };
    },
    async peerdoc(query) {
      const item = pushed.get('url' in query ? query.url : '');
      if (item === undefined) return undefined;
      const { url, collection, lastModified } = item;
      const dates = keepsDates ? { lastModified } : { loadDate: systemClock.now() + 1_000 };
      return { url, words, collections: [collection], at: systemClock.now(), fields: {}, ...dates };
    },
    commitIndex: async () => {},
    async citation(query) {
      const name = 'url' in query ? query.url.slice(BASE.length) : '';
      const text = texts[name];
      const sentences = text === undefined ? [] : [{ number: 1, text, appearsIn: [] }];
      return { sentences, citing: [], similar: [] };
    },
  };
}

async function statuses(peer: CanaryPeer): Promise<Record<string, string>> {
  const plans = canaryPlan(BASE, [], systemClock.now());
  const folders = [{ path: '/srv/a', collection: 'c' }];
  const config = await checkConfig({ folders, confirm: { hold: '0s' } }, '/srv/config.json');
  const how = { config, timeoutMs: 10_000, log: silentLogger, signal: new AbortController().signal };
  const report: CanaryReport = await pushCanaries(peer, plans, how);
  return Object.fromEntries(report.rows.map(({ check, status }) => [check, status]));
}

describe('a canary', () => {
  it('works where the peer shows its words, its letters and its date', async () => {
    expect(new Set(Object.values(await statuses(showing(TEXTS, 40))))).toEqual(new Set(['works']));
  });

  it('does not work when the peer has no more than the words of its URL', async () => {
    const { 'document.pdf': _, ...others } = TEXTS;
    expect(await statuses(showing(others, 9))).toMatchObject({ 'plain text': 'works', PDF: 'fails' });
  });

  it('does not work when the peer changed its letters', async () => {
    const mangled = { ...TEXTS, 'greetings.txt': 'Greetings from afar: GrÃ¼Ãe aus Å\x81Ã³dÅº und KrakÃ³w.' };
    expect(await statuses(showing(mangled, 40))).toMatchObject({ PDF: 'works', 'non-ASCII text': 'fails' });
  });

  it('tells of a look-up that fails once all are confirmed, beside what works', async () => {
    const peer = showing(TEXTS, 40);
    const seen = new Set<string>();
    const fails: CanaryPeer['peerdoc'] = async (query) => {
      const url = 'url' in query ? query.url : '';
      if (seen.has(url)) throw new PeersyncError({ code: 'PEER_TIMEOUT', message: 'Too late.', hint: '' });
      const doc = await peer.peerdoc(query);
      if (doc !== undefined) seen.add(url);
      return doc;
    };
    expect(await statuses({ ...peer, peerdoc: fails })).toMatchObject({
      ...{ 'plain text': 'works', 'document page': 'fails', citations: 'works' },
    });
  });

  it('tells that the last modification was not kept', async () => {
    expect(await statuses(showing(TEXTS, 40, false))).toMatchObject({
      'plain text': 'works',
      'last modified': 'fails',
    });
  });
});
