import type { IncomingMessage } from 'node:http';
import type { Answer, AnswerForm } from './answer.js';
import type { FormLimits, RequestForm } from './form.js';
import type { Visit } from './visit.js';

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
