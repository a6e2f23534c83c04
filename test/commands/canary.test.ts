import { describe, expect, it } from 'vitest';
import { type CanaryPeer, pushCanaries } from '../../src/commands/canary.js';
import { canaryPlan } from '../../src/commands/canary-documents.js';
import { type Probed, reportOf } from '../../src/commands/canary-report.js';
import { checkConfig } from '../../src/config/load.js';
import { systemClock } from '../../src/lib/clock.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { silentLogger } from '../../src/lib/logger.js';
import { DIALECTS } from '../../src/peer/dialects/dialects.js';
import { yacyAddresses } from '../../src/peer/dialects/yacy.js';
import { PeerError } from '../../src/peer/errors.js';
import type { Peerdoc } from '../../src/peer/peerdoc.js';
import { extractDocument } from '../../src/uplink/document-text.js';

const { yacy, standard } = DIALECTS;
const BASE = 'https://files.example.org/canary/';
const LOCAL = 'http://vault.local/files/';
const FOLDERS = [
  { name: 'files', url: 'https://files.example.org/' },
  { name: 'vault', url: LOCAL },
];

const CONFIRMED = {
  status: 'confirmed',
  evidence: { kind: 'digest', shown: 'sha256 ab' },
} as const;
const UNSEEN = { status: 'unseen', message: 'the peer does not know the document' } as const;
const error = new PeerError('PEER_FAILED', { url: BASE, what: 'failed', delivered: 'yes' });
const behindGate = new PeersyncError(yacyAddresses.dropped(LOCAL));

/**
 * The outcomes of three documents and the one below the URL of the folder `vault`: all well, except
 * changes at one of them.
 */
function withAt(what?: string, changes: Partial<Probed> = {}): readonly Probed[] {
  return canaryPlan(BASE, FOLDERS, Date.UTC(2026, 0, 1)).map((plan, i) => {
    const { kind, sentence, wordsSent } = plan;
    const text = `So: ${sentence.whole}.`;
    const looked = {
      words: wordsSent,
      sentences: [{ number: 1, text, appearsIn: [] }],
      visibleMs: 1_000 * (i + 1),
    };
    const well: Probed = { ...plan, outcome: CONFIRMED, ...(kind === 'canary' && looked) };
    return (kind === 'canary' ? plan.what : kind) === what ? { ...well, ...changes } : well;
  });
}

const cited = (text: string) => ({ words: 9, sentences: [{ number: 1, text, appearsIn: [] }] });
const NFD = 'GREETINGS  from afar: Grüße aus Łódź\nund Kraków'.normalize('NFD');

describe('the report of a canary', () => {
  it('tells what works, how long the slowest took, and what it saw', () => {
    const report = reportOf(withAt(), yacy, 18_000);
    expect(report.canary).toMatchObject({
      dialect: 'yacy',
      holdMs: 18_000,
      takesBinary: true,
      timeToVisibleMs: 6_000,
      dropped: [],
    });
    expect(report.findings.map(({ check, ok }) => `${check}: ${ok}`)).toEqual([
      'plain text: true',
      'PDF: true',
      'Word: true',
      'Excel: true',
      'e-mail: true',
      'non-ASCII text: true',
      'addresses of folder files: true',
      'addresses of folder vault: true',
    ]);
    expect(report.findings[0]?.message).toMatch(/^confirmed \(digest: sha256 ab\), \d+ words$/);
  });

  it.each([
    ['PDF', { outcome: undefined }, yacy, true, /only text/, undefined],
    [
      'PDF',
      { outcome: UNSEEN },
      yacy,
      false,
      /took .*pdf and did not show it/,
      /network\.unit\.domain/,
    ],
    ['PDF', { outcome: UNSEEN }, standard, false, /did not show it/, /--timeout/],
    ['PDF', { outcome: { status: 'failed', error } }, yacy, false, /failed/, /./],
    ['PDF', { outcome: { status: 'accepted' } }, yacy, false, /^accepted, and no more$/, /./],
    [
      'PDF',
      { words: 9, sentences: undefined },
      yacy,
      false,
      /shows 9 words of about \d+$/,
      /its words/,
    ],
    ['PDF', { words: 9 }, yacy, true, /9 words$/, undefined],
    ['PDF', { words: undefined, sentences: undefined }, yacy, true, /^confirmed/, undefined],
    [
      'non-ASCII text',
      cited('Greetings from afar: GrÃ¼Ãe'),
      yacy,
      false,
      /changed its letters/,
      /./,
    ],
    ['non-ASCII text', cited(NFD), yacy, true, /^confirmed/, undefined],
    ['address', { outcome: undefined }, yacy, true, /not tried/, undefined],
    ['address', { outcome: UNSEEN }, standard, false, /did not show it/, /--timeout/],
    [
      'address',
      { outcome: { status: 'failed', error: behindGate } },
      yacy,
      false,
      /never shows/,
      /unit\.domain/,
    ],
  ] as [string, Partial<Probed>, typeof yacy, boolean, RegExp, RegExp | undefined][])(
    'of %s, where it was %o, is plain',
    (what, changes, dialect, ok, message, hint) => {
      const check = what === 'address' ? 'addresses of folder vault' : what;
      const finding = reportOf(withAt(what, changes), dialect, 0).findings.find(
        (each) => each.check === check,
      );
      expect(finding).toMatchObject({ ok, message: expect.stringMatching(message) });
      if (hint === undefined) expect(finding).not.toHaveProperty('hint');
      else expect(finding?.hint).toMatch(hint);
    },
  );

  it('names the folders whose documents the peer would take and never show, and no time where it showed nothing', () => {
    const dropped = (outcome: Probed['outcome']) =>
      reportOf(withAt('address', { outcome }), yacy, 0).canary.dropped;
    expect(dropped({ status: 'failed', error: behindGate })).toEqual(['vault']);
    expect(dropped({ status: 'failed', error })).toEqual([]);
    const probed = withAt().map(({ visibleMs: _, ...each }) => ({ ...each, outcome: UNSEEN }));
    expect(reportOf(probed, yacy, 0).canary).toMatchObject({
      timeToVisibleMs: undefined,
      dropped: ['files', 'vault'],
    });
  });
});

/** A peer that takes everything, and whose look-ups answer with these fields besides the URL. */
function peerShowing(lookUp: (url: string, times: number) => Partial<Peerdoc>): CanaryPeer {
  const looked = new Map<string, number>();
  return {
    dialect: 'standard',
    isEmbedded: false,
    detect: async () => 'standard',
    push: async (items) => ({
      results: items.map(() => ({ ok: true })),
      peerTime: systemClock.now(),
    }),
    async peerdoc(query) {
      const url = 'url' in query ? query.url : '';
      const times = (looked.get(url) ?? 0) + 1;
      looked.set(url, times);
      const own = { url, collections: ['peersync-canary'], at: systemClock.now(), fields: {} };
      return { ...own, loadDate: systemClock.now() + 1_000, ...lookUp(url, times) };
    },
    commitIndex: async () => {},
    remove: async () => [],
    citation: async () => {
      throw LATE;
    },
  };
}

const LATE = new PeersyncError({ code: 'PEER_TIMEOUT', message: 'Too late.', hint: '' });

async function findingsAt(peer: CanaryPeer): Promise<readonly string[]> {
  const folders = [{ path: '/srv/a', collection: 'c' }];
  const config = await checkConfig({ folders, confirm: { hold: '0s' } }, '/srv/config.json');
  const { findings } = await pushCanaries(peer, canaryPlan(BASE, [], systemClock.now()), {
    config,
    timeoutMs: 10_000,
    log: silentLogger,
    signal: new AbortController().signal,
    extractDocument,
  });
  return findings.map(({ check, message }) => `${check}: ${message}`);
}

it('a confirmed canary is reported as such even if later look-ups fail', async () => {
  const peer = peerShowing((_, times) => {
    if (times > 1) throw LATE;
    return {};
  });
  expect(await findingsAt(peer)).toEqual([
    expect.stringMatching(/^plain text: confirmed/),
    expect.stringMatching(/^PDF: confirmed/),
    expect.stringMatching(/^Word: confirmed/),
    expect.stringMatching(/^Excel: confirmed/),
    expect.stringMatching(/^e-mail: confirmed/),
    expect.stringMatching(/^non-ASCII text: confirmed/),
    expect.stringMatching(/^canaries: 6 documents stay in the peer, .*no way to remove/),
  ]);
});

it('an earlier canary at the same URL neither confirms the new one nor counts as its words', async () => {
  const before = systemClock.now() - 60_000;
  const confirmedAt = new Map<string, number>();
  const peer = peerShowing((url, times) => {
    const isOld = times === 1 || times > 2;
    if (!isOld) confirmedAt.set(url, times);
    return isOld ? { loadDate: before, words: 1 } : { words: 40 };
  });
  const findings = await findingsAt(peer);
  expect(confirmedAt.size).toBe(6);
  expect(findings.slice(0, 6)).toEqual(
    Array.from({ length: 6 }, () => expect.stringMatching(/: confirmed \(loadDate: [^)]*\)$/)),
  );
});
