const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** Hours east of Greenwich, of the names that Java prints where peers of this family run. */
const ZONES: ReadonlyMap<string, number> = new Map([
  ...['UTC', 'GMT', 'Z', 'WET'].map((zone) => [zone, 0] as const),
  ...['CET', 'WEST', 'MEZ'].map((zone) => [zone, 1] as const),
  ...['CEST', 'EET', 'MESZ'].map((zone) => [zone, 2] as const),
  ...['EEST', 'MSK'].map((zone) => [zone, 3] as const),
  ...[
    ['EST', -5],
    ['EDT', -4],
    ['CST', -6],
    ['CDT', -5],
    ['MST', -7],
    ['MDT', -6],
    ['PST', -8],
    ['PDT', -7],
  ].map(([zone, hours]) => [String(zone), Number(hours)] as const),
]);

const ISO = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?$/i;
const RFC_1123 = /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d (GMT|UTC|[+-]\d{4})$/;
const JAVA = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{1,2}) (\d\d):(\d\d):(\d\d) ([A-Z]{1,5}) (\d{4})$/;
const EPOCH_MS = /^\d{13}$/;

/**
 * A moment as peers write it, in ms since the epoch: ISO 8601 (without a zone: UTC), RFC 1123, Java's
 * `Sat Nov 21 03:26:19 UTC 2026`, or milliseconds. Undefined for anything else, a date without a time included.
 */
export function parseMoment(text: string): number | undefined {
  const value = moment(text.trim());
  return value === undefined || Number.isNaN(value) ? undefined : value;
}

function moment(text: string): number | undefined {
  if (EPOCH_MS.test(text)) return Number(text);
  const iso = ISO.exec(text);
  if (iso !== null) return Date.parse(`${iso[1]}T${iso[2]}${iso[3] ?? ''}${withColon(iso[4] ?? 'Z')}`);
  if (RFC_1123.test(text)) return Date.parse(text);
  const java = JAVA.exec(text);
  if (java === null) return undefined;
  const [, month = '', day, hour, minute, second, zone = '', year] = java;
  const offset = ZONES.get(zone);
  const monthIndex = MONTHS.indexOf(month);
  if (offset === undefined || monthIndex === -1) return undefined;
  return Date.UTC(
    Number(year),
    monthIndex,
    Number(day),
    Number(hour) - offset,
    Number(minute),
    Number(second),
  );
}

function withColon(zone: string): string {
  return zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2').toUpperCase();
}

/**
 * When a request began by the peer's clock, which dates its answer. Peers do so in whole seconds, cut off: the result is never
 * later than the real beginning.
 */
export function beganAt(peerAt: number, tookMs: number): number {
  return Math.floor((peerAt - tookMs) / 1000) * 1000;
}
