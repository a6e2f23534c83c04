import { describe, expect, it } from 'vitest';
import { type CanaryRow, canaryPlan, type Probed, reportOf } from '../../src/commands/canary.js';
import { PeersyncError } from '../../src/lib/errors.js';
import { DIALECTS } from '../../src/peer/dialects.js';
import { PeerError } from '../../src/peer/errors.js';
import { gated } from '../../src/uplink/failure-attribution.js';

const AT = Date.UTC(2026, 0, 1);
const MODIFIED = AT - 3_600_000;
const BASE = 'https://files.example.org/canary/';
const LOCAL = 'http://vault.local/files/';
const CONFIRMED = { status: 'confirmed', evidence: { kind: 'digest', shown: 'sha256 ab' } } as const;
const UNSEEN = { status: 'unseen', message: 'the peer does not know the document' } as const;

const { yacy, standard } = DIALECTS;

/** What became of the canaries where all went well: three documents, and one below the URL of the folder `vault`. */
function allWell(): readonly Probed[] {
  const folders = [
    { name: 'files', url: 'https://files.example.org/' },
    { name: 'vault', url: LOCAL },
  ];
  return canaryPlan(BASE, folders, AT).map((plan, i) => {
    const { url, sentence, words } = plan;
    const { whole } = sentence;
    const sent = { size: 9, digest: 'ab', url, collection: 'c', at: AT, lastModified: MODIFIED };
    if (plan.kind === 'address') return { ...plan, outcome: CONFIRMED, sent };
    return {
      ...{ ...plan, sent, outcome: CONFIRMED, visibleMs: 1_000 * (i + 1) },
      doc: { url, words, size: 9, lastModified: MODIFIED + 400, at: AT, fields: {} },
      citation: { sentences: [{ number: 1, text: `So: ${whole}.`, appearsIn: [] }], citing: [], similar: [] },
    };
  });
}

/** As `allWell`, with changes at one of them. */
function withAt(index: number, changes: Partial<Probed>): readonly Probed[] {
  return allWell().map((probed, i) => (i === index ? { ...probed, ...changes } : probed));
}

function rowsOf(probed: readonly Probed[], dialect = yacy): Record<string, CanaryRow> {
  return Object.fromEntries(reportOf(probed, dialect, 18_000).rows.map((row) => [row.check, row]));
}

const PLAIN = 0;
const PDF = 1;
const GREETINGS = 2;
const VAULT = 3;

describe('the report of a canary', () => {
  it('tells what works, how long the slowest took, and what each row saw', () => {
    const report = reportOf(allWell(), yacy, 18_000);
    expect(report).toMatchObject({
      ...{ dialect: 'yacy', holdMs: 18_000, takesBinary: true, timeToVisibleMs: 3_000, dropped: [] },
    });
    expect(report.rows.map(({ check, status }) => `${check}: ${status}`)).toEqual([
      'plain text: works',
      'PDF: works',
      'non-ASCII text: works',
      'document page: works',
      'citations: works',
      'last modified: works',
      'folder files: works',
      'folder vault: works',
    ]);
    expect(report.rows[0]?.message).toMatch(/^confirmed \(digest: sha256 ab\), \d+ words$/);
  });

  it('has no time, and no look at pages, where nothing was shown', () => {
    const probed = allWell().map(({ visibleMs: _, ...each }) => ({ ...each, outcome: UNSEEN }));
    const report = reportOf(probed, yacy, 18_000);
    expect(report).not.toHaveProperty('timeToVisibleMs');
    expect(report.rows.map(({ check }) => check)).not.toContain('document page');
    expect(report.dropped).toEqual(['files', 'vault']);
  });
});

describe('a kind of document', () => {
  it('was not tried where the peer takes only text', () => {
    expect(rowsOf(withAt(PDF, { outcome: undefined })).PDF?.status).toBe('not tried');
  });

  it.each([
    [{ status: 'refused', message: 'no thanks' } as const, /refused .*document\.pdf: no thanks/, undefined],
    [UNSEEN, /took .*document\.pdf and did not show it/, /network\.unit\.domain/],
    [
      {
        status: 'failed',
        error: new PeerError('PEER_FAILED', { url: BASE, what: 'failed', delivered: 'yes' }),
      } as const,
      /failed/,
      /./,
    ],
    [{ status: 'accepted' } as const, /^accepted, and no more$/, undefined],
  ])('fails where it was %o', (outcome, message, hint) => {
    const row = rowsOf(withAt(PDF, { outcome })).PDF;
    expect(row).toMatchObject({ status: 'fails', message: expect.stringMatching(message) });
    if (hint === undefined) expect(row).not.toHaveProperty('hint');
    else expect(row?.hint).toMatch(hint);
  });

  it('that was not shown may need more time where the peer has no gate', () => {
    expect(rowsOf(withAt(PLAIN, { outcome: UNSEEN }), standard)['plain text']?.hint).toContain('--timeout');
  });

  it('fails where its letters came out changed, and not where only their form did', () => {
    const citing = (text: string) => ({
      doc: { words: 9, at: AT, fields: {} },
      citation: { sentences: [{ number: 1, text, appearsIn: [] }], citing: [], similar: [] },
    });
    const check = (text: string) => rowsOf(withAt(GREETINGS, citing(text)))['non-ASCII text'];
    expect(check('Greetings from afar: GrÃ¼Ãe')).toMatchObject({
      status: 'fails',
      message: expect.stringContaining('changed its letters'),
    });
    const decomposed = 'GREETINGS  from afar: Grüße aus Łódź\nund Kraków'.normalize('NFD');
    expect(check(decomposed)?.status).toBe('works');
  });

  it('fails where the peer has few of its words, unless a sentence of it is known', () => {
    const doc = { words: 9, at: AT, fields: {} };
    expect(rowsOf(withAt(PDF, { doc, citation: undefined })).PDF).toMatchObject({
      status: 'fails',
      message: expect.stringMatching(/^the peer shows 9 words of about \d+$/),
    });
    expect(rowsOf(withAt(PDF, { doc })).PDF?.status).toBe('works');
  });
});

describe('what the first document shows', () => {
  it('is gone where there is no page of it any more, and has no citations where the peer knows none', () => {
    const rows = rowsOf(withAt(PLAIN, { doc: undefined, citation: undefined }));
    expect(rows['document page']).toMatchObject({ status: 'fails', message: 'the document is gone again' });
    expect(rows.citations?.status).toBe('fails');
  });

  it('has the words of the error where citations failed', () => {
    const error = new PeerError('PEER_FAILED', { url: BASE, what: 'failed', delivered: 'yes' });
    const row = rowsOf(withAt(PLAIN, { citation: { status: 'failed', error } })).citations;
    expect(row).toMatchObject({ status: 'fails', message: error.message, hint: error.hint });
  });

  it('kept its last modification to the second, or did not, or was not told one', () => {
    const doc = { words: 99, at: AT, fields: {} };
    const kept = (changes: Partial<Probed>, dialect = yacy) =>
      rowsOf(withAt(PLAIN, changes), dialect)['last modified']?.status;
    expect(kept({ doc: { ...doc, lastModified: MODIFIED + 1_000 } })).toBe('fails');
    expect(kept({ doc })).toBe('fails');
    const sent = { size: 9, digest: 'ab', url: BASE, collection: 'c', at: AT };
    expect(kept({ sent })).toBe('not tried');
    expect(kept({}, standard)).toBe('not tried');
  });
});

describe('a folder', () => {
  it('is dropped where the peer shows other addresses and never its own, which is told with the setting', () => {
    const error = new PeersyncError(gated(LOCAL));
    const report = reportOf(withAt(VAULT, { outcome: { status: 'failed', error } }), yacy, 18_000);
    expect(report.dropped).toEqual(['vault']);
    const row = report.rows.at(-1);
    expect(row).toMatchObject({ check: 'folder vault', status: 'fails' });
    expect(row?.message).toContain('never shows it');
    expect(row?.hint).toContain('network.unit.domain');
  });

  it('is not dropped where the peer refused it, and is told of no gate where the peer has none', () => {
    const refused = withAt(VAULT, { outcome: { status: 'refused', message: 'no' } });
    expect(reportOf(refused, yacy, 0).dropped).toEqual([]);
    const row = rowsOf(withAt(VAULT, { outcome: UNSEEN }), standard)['folder vault'];
    expect(row?.message).toContain('did not show it');
  });

  it('was not tried where its document was not sent', () => {
    expect(rowsOf(withAt(VAULT, { outcome: undefined }))['folder vault']?.status).toBe('not tried');
  });
});
