/**
 * The format of the database, in SQLite's `user_version`. There are no migrations: a change of
 * SCHEMA takes the next number, and a database of another format is refused.
 */
export const FORMAT = 5;

/**
 * The tables of the database.
 *
 * - `documents` has one row a document; `memberships` has its collections, `texts` its text in
 *   deflated parts.
 * - `words` is the full-text index. `prefixes` indexes the first two to four letters of each word.
 *   Both take their row number from `documents.id`. `vocabulary` lists the terms of `words`.
 * - `counts` has the number of documents, in all (`documents`) and by collection (`in NAME`).
 * - `tables`, `table_columns` and `table_rows` are the tables that programs keep in the peer.
 *   `dropped_tables` names those whose rows are still to be deleted. Ids of tables are never reused
 *   (AUTOINCREMENT). Names and cells are bytes, because SQLite ends a text at NUL.
 *
 * FTS5 merges on its own for 50 ms now and then. `DocumentStore.merge` does it in small steps, so
 * `automerge` is off.
 */
export const SCHEMA = `
  CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    url TEXT NOT NULL UNIQUE,
    urlhash TEXT NOT NULL,
    title TEXT NOT NULL,
    collections TEXT NOT NULL,
    size INTEGER NOT NULL,
    words INTEGER NOT NULL,
    digest TEXT NOT NULL,
    last_modified INTEGER NOT NULL,
    load_date INTEGER NOT NULL,
    author TEXT,
    date INTEGER,
    language TEXT
  ) STRICT;
  CREATE INDEX documents_by_urlhash ON documents (urlhash);

  CREATE TABLE memberships (
    collection TEXT NOT NULL,
    document INTEGER NOT NULL,
    PRIMARY KEY (collection, document)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE texts (
    document INTEGER NOT NULL,
    part INTEGER NOT NULL,
    deflated BLOB NOT NULL,
    PRIMARY KEY (document, part)
  ) STRICT;

  CREATE TABLE counts (
    name TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE VIRTUAL TABLE words USING fts5 (
    title, name, body, content='', contentless_delete=1, tokenize='ascii'
  );
  INSERT INTO words (words, rank) VALUES ('rank', 'bm25(6.0, 3.0, 1.0)');
  INSERT INTO words (words, rank) VALUES ('automerge', 0);
  CREATE VIRTUAL TABLE prefixes USING fts5 (
    letters, content='', contentless_delete=1, tokenize='ascii', detail=none
  );
  INSERT INTO prefixes (prefixes, rank) VALUES ('automerge', 0);
  CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);

  CREATE TABLE tables (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name BLOB NOT NULL UNIQUE,
    rows INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE table_columns (
    id INTEGER PRIMARY KEY,
    in_table INTEGER NOT NULL,
    name BLOB NOT NULL,
    UNIQUE (in_table, name)
  ) STRICT;

  CREATE TABLE table_rows (
    in_table INTEGER NOT NULL,
    pk BLOB NOT NULL,
    cells BLOB NOT NULL,
    PRIMARY KEY (in_table, pk)
  ) STRICT;

  CREATE TABLE dropped_tables (id INTEGER PRIMARY KEY) STRICT;
`;
