import type { IncomingMessage } from 'node:http';
import type { Answer, AnswerForm, Visit } from './answer.js';
import { type CitationParts, citation } from './citation.js';
import type { FormLimits, RequestForm } from './form.js';
import type { Library } from './library.js';
import { peerdoc } from './peerdoc.js';
import { MOST_ITEMS, type PushParts, push } from './push.js';
import { type SearchParts, searchJson, searchPage } from './search-page.js';
import { MOST_UPLOAD, ShareEndpoint } from './share.js';
import type { ShareStore } from './share-store.js';
import { MOST_KEYS, type TableParts, type TablePath, tablePages } from './table-endpoint.js';
import { LONGEST_NAME, MOST_COLUMNS } from './table-store.js';

export interface RouteParts extends PushParts, SearchParts, CitationParts, TableParts {
  readonly library: Library;
  readonly shares: ShareStore;
  /** Largest body of a push, in bytes. */
  readonly maxBody: number;
}

/** Bodies that only ask for something stay small. */
const SMALL: FormLimits = { body: 65_536, fields: 20 };
const FORMS: readonly AnswerForm[] = ['html', 'json'];
const TABLE_PATHS: readonly (readonly [path: string, as: TablePath])[] = [
  ['/api/table_p', 'api'],
  ['/Tables_p', 'editor'],
];

/** Every address that the peer answers. */
export function routes(parts: RouteParts): ReadonlyMap<string, Route> {
  const table = new Map<string, Route>([
    ['/', { form: 'html', effect: 'reads', limits: SMALL, handle: (form) => searchPage(form, parts) }],
    [
      '/search.json',
      { form: 'json', effect: 'reads', limits: SMALL, handle: (form) => searchJson(form, parts) },
    ],
  ]);
  const tableLimits: FormLimits = {
    body: parts.maxBody,
    fields: MOST_KEYS + MOST_COLUMNS + 20,
    name: 'col_'.length + LONGEST_NAME,
  };
  const large: FormLimits = { body: parts.maxBody, fields: 3 * MOST_ITEMS + 10 };
  const shares = new ShareEndpoint(parts.shares);
  for (const as of FORMS) {
    table.set(`/api/push_p.${as}`, {
      form: as,
      effect: 'writes',
      limits: large,
      handle: (form, visit) => push(form, visit.as, parts, visit.baseUrl),
    });
    table.set(`/api/peerdoc.${as}`, {
      form: as,
      effect: 'reads',
      limits: SMALL,
      handle: (form, visit) => peerdoc(form, visit.as, parts.library),
    });
    for (const [path, kind] of TABLE_PATHS) {
      table.set(`${path}.${as}`, {
        form: as,
        effect: 'either',
        limits: tableLimits,
        handle: (form, visit) => tablePages(form, visit, kind, parts),
      });
    }
    table.set(`/api/citation.${as}`, {
      form: as,
      effect: 'reads',
      limits: SMALL,
      handle: (form, visit) => citation(form, visit, parts),
    });
    table.set(`/api/share.${as}`, {
      form: as,
      effect: 'either',
      limits: { ...SMALL, body: MOST_UPLOAD },
      receive: (request, form, visit) => shares.receive(request, form, visit),
      handle: (form, visit) => shares.handle(form, visit),
    });
  }
  return table;
}

/**
 * What a request to a page can change: `reads` nothing, so HEAD may ask for it and its body waits for no push; `writes` the
 * peer, so a page of another site may not cause it; `either`, by its parameters: then the route calls `requireChange`.
 */
export type Effect = 'reads' | 'writes' | 'either';

/** One page or endpoint: how it answers the parameters it was sent. */
export interface Route {
  readonly form: AnswerForm;
  readonly effect: Effect;
  readonly limits: FormLimits;
  readonly handle: (form: RequestForm, visit: Visit) => Answer | Promise<Answer>;
  /** Takes a body that is not held in memory, in the place of the usual reader of forms; refusing one is its business. */
  readonly receive?: (request: IncomingMessage, form: RequestForm, visit: Visit) => Promise<void>;
}
