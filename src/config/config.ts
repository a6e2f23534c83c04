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

/** The whole configuration: checked, complete, all paths absolute, all URLs in normal form; frozen. */
export interface Config extends DeepReadonly<Omit<Parsed, 'folders' | '$schema'>> {
  readonly folders: readonly FolderConfig[];
}

type DeepReadonly<T> = T extends string | number | boolean | undefined
  ? T
  : { readonly [K in keyof T]: DeepReadonly<T[K]> };
