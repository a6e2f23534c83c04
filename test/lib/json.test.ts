import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  memberOf,
  NestedTooDeeply,
  parseBounded,
  parseJson,
  TooManyValues,
} from '../../src/lib/json.js';

function faultOf(text: string): string {
  const result = parseJson(text);
  return 'fault' in result
    ? `${result.fault.line}:${result.fault.column} ${result.fault.what}`
    : 'none';
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('a configuration file that is not JSON', () => {
  it.each([
    ['', '1:1 nothing: the file is empty'],
    ['{\n  // why\n}', '2:3 a comment'],
    ['{"a": # why\n 1}', '1:7 a comment'],
    ['{"a": 1,\n  "b": 2,\n}', '2:9 a comma before "}"'],
    ['{"a": [1, 2,]}', '1:12 a comma before "]"'],
    ['{"a": 1\n "b": 2}', '2:2 neither "," nor "}"'],
    ['{"a" 1}', '1:6 a key without ":"'],
    ['{a: 1}', '1:2 a key without double quotes'],
    ['{"a": \'b\'}', '1:7 no value'],
    ['{"a": "b\n}', '1:7 a string that is not closed on its line'],
    ['{"a": "b\tc"}', '1:9 no character of a string'],
    ['{"a": "C:\\dir"}', '1:10 no character of a string'],
    ['{\n"a": {', '2:7 the end of the file within the object opened in line 2'],
    ['[1', '1:3 the end of the file within the list opened in line 1'],
    ['{"a":', '1:6 the end of the file where a value should stand'],
    ['{"a": 01}', '1:7 no value'],
    ['{"a": True}', '1:7 no value'],
    ['{}}', '1:3 something after the end'],
    ['{"a": 1, "\\u0061": 2}', '1:10 the key "a" for the second time'],
    ['["🎉🎉", x]', '1:8 no value'],
    ['{"🎉": 1,\r\n\r\n x}', '3:2 a key without double quotes'],
    ['['.repeat(1000), '1:66 more than 64 levels'],
  ])('the fault of %j is shown with its position', (text, start) => {
    expect(faultOf(text).slice(0, start.length)).toBe(start);
  });

  it.each([
    '{"password": hunter2}',
    '{"password": "hunter2}',
    '{"password": "a" hunter2}',
    'hunter2',
  ])('is never quoted with its values, because one may be a password: %j', (text) => {
    expect(faultOf(text)).not.toContain('hunter2');
  });
});

describe('JSON', () => {
  it('is accepted and refused as by JSON.parse, also if a character is lost, doubled or changed', () => {
    const instead = fc.constantFrom('', ',', '"', '{', ']', '\\', '\n', '0', '-', 'e', '/', 'é');
    const damaged = fc.tuple(fc.json(), fc.nat(), instead).map(([text, nat, character]) => {
      const at = nat % text.length;
      return text.slice(0, at) + character + text.slice(at + 1);
    });
    fc.assert(
      fc.property(damaged, (text) => {
        const fault = faultOf(text);
        // JSON.parse accepts these faults, and we do not.
        if (/second time|levels of nesting/.test(fault)) return;
        expect(fault === 'none').toBe(parses(text));
        if (fault === 'none') expect(parseJson(text)).toEqual({ value: JSON.parse(text) });
      }),
      { numRuns: 1000 },
    );
  });
});

/** Such a text is parsed in 7 s of processor time, and refused in a tenth of a second. */
const QUICK_MS = 2_000;

describe('JSON from outside', () => {
  it('is read as by JSON.parse', () => {
    const same = fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(parseBounded(text, 1_000)).toEqual(JSON.parse(text));
    });
    fc.assert(same);
  });

  it('may have any brackets in its strings, and elsewhere no more open ones than the limit', () => {
    const text = JSON.stringify({ a: `${'[{'.repeat(1_000)}\\"[`, b: [[{}]] });
    expect(parseBounded(text, 4)).toEqual(JSON.parse(text));
    expect(() => parseBounded(text, 3)).toThrow(NestedTooDeeply);
    expect(() => parseBounded('[[["a', 3)).toThrow(SyntaxError);
  });

  it('has at most 200,000 values, however small; commas and brackets in strings do not count', () => {
    const flat = (value: string, count: number) =>
      `{"x":[${`${value},`.repeat(count - 1)}${value}]}`;
    for (const value of ['{}', '[]', '0', '"a"', '{"k":0}'])
      expect(() => parseBounded(flat(value, 210_000))).toThrow(TooManyValues);
    expect(() => parseBounded(flat('0', 190_000))).not.toThrow();
    expect(() => parseBounded(JSON.stringify({ text: ',[{'.repeat(1_000_000) }))).not.toThrow();
    const text = flat('{}', 5_500_000);
    expect(processorMs(() => expect(() => parseBounded(text)).toThrow(TooManyValues))).toBeLessThan(
      QUICK_MS,
    );
  });

  it('is refused at once if it has only brackets', () => {
    const text = '['.repeat(15_000_000);
    expect(
      processorMs(() => expect(() => parseBounded(text)).toThrow(NestedTooDeeply)),
    ).toBeLessThan(QUICK_MS);
  });
});

/** Returns the processor time that some work takes, in ms. */
function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe('a member of a text', () => {
  const DIR = '/var/lib/peersync';
  it.each([
    [`{"state": {"dir": "${DIR}"}}`, DIR],
    [`{"folders": [{"state": {"dir": "/no"}}], "state": {"a": 1, "dir": "${DIR}"`, DIR],
    [`{"a": "}", "state": {"dir": "${DIR}"}, oops`, DIR],
    [`{"state": {"dir": "a\\"b"}}`, 'a"b'],
    [`{"state": {"other": 1}}`, undefined],
    [`{"state": "dir"}`, undefined],
    // The fault comes before the member.
    [`{oops, "state": {"dir": "${DIR}"}}`, undefined],
    ['{"state": {"dir": "/var', undefined],
    ['', undefined],
    ['[1]', undefined],
  ])('is found before the first fault: %s', (text, value) => {
    expect(memberOf(text, ['state', 'dir'])).toBe(value);
  });
});
