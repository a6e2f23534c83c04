import type { z } from 'zod';
import type { configSchema } from './schema.js';
import type { Bytes, Milliseconds } from './units.js';

type Parsed = z.output<typeof configSchema>;

/** Another collection for the files that match, or none at all; the first rule that matches wins. */
export type Rule =
  | { readonly match: string; readonly collection: string }
  | { readonly match: string; readonly skip: true };

/** One watched folder, complete: nobody asks "was it given?" behind this. */
export interface FolderConfig {
  /** Unique among the folders. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  readonly collection: string;
  /** The base of its documents' URLs, in normal form, `/` at the end; for `documentUrl`. */
  readonly url: string;
  /** Patterns in gitignore syntax. */
  readonly include: readonly string[];
  /** Patterns in gitignore syntax. */
  readonly ignore: readonly string[];
  readonly rules: readonly Rule[];
  /** How long a file must be at rest before it is read. */
  readonly settle: Milliseconds;
  readonly maxFileSize: Bytes;
  readonly followSymlinks: boolean;
}

/** A mirror of a shared object, complete. */
export type ShareMirrorConfig = DeepReadonly<Named<Parsed['mirror']['shares'][number]>>;
/** A mirror of a table, or of every table that a pattern matches, complete. */
export type TableMirrorConfig = DeepReadonly<Named<Parsed['mirror']['tables'][number]>>;
/** A mirror of the citations of one folder, complete. */
export type CitationsMirrorConfig = DeepReadonly<Named<Parsed['mirror']['citations'][number]>>;
/** `path` is still a template where the schema says so. */
type Named<T> = Omit<T, 'name' | 'path'> & { readonly name: string; readonly path: string };

export interface MirrorConfig
  extends DeepReadonly<Omit<Parsed['mirror'], 'shares' | 'tables' | 'citations'>> {
  readonly shares: readonly ShareMirrorConfig[];
  readonly tables: readonly TableMirrorConfig[];
  readonly citations: readonly CitationsMirrorConfig[];
}

/** The whole configuration: checked, complete, all paths absolute, all URLs in normal form; frozen. */
export interface Config extends DeepReadonly<Omit<Parsed, 'folders' | 'mirror' | '$schema'>> {
  readonly folders: readonly FolderConfig[];
  readonly mirror: MirrorConfig;
}

type DeepReadonly<T> = T extends string | number | boolean | undefined
  ? T
  : { readonly [K in keyof T]: DeepReadonly<T[K]> };
