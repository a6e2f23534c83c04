import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyData } from '../../src/state/data.js';
import { entryRow, type Row } from '../../src/state/row.js';
import { RowReader } from '../../src/state/row-reader.js';
import { anyEntry } from './arbitrary.js';
import { lifeOf, pendingRecord } from './records.js';

describe('a record on disk', () => {
  it('is read as it was written, to the last digit', () => {
    fc.assert(
      fc.property(anyEntry, (entry) => {
        const row: Row = JSON.parse(JSON.stringify(entryRow(entry)));
        expect(new RowReader(emptyData()).entry(row)).toStrictEqual(entry);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is half as long as its JSON', () => {
    const [, , confirmed] = lifeOf(pendingRecord('some/directory/with a file.txt'));
    expect(JSON.stringify(entryRow(confirmed)).length).toBeLessThan(JSON.stringify(confirmed).length / 2);
  });

  it('of an unknown kind is refused', () => {
    const row = ['?', ...entryRow(pendingRecord('a')).slice(1)] as unknown as Row;
    expect(() => new RowReader(emptyData()).apply(row)).toThrow(/unknown status "\?"/);
  });
});
