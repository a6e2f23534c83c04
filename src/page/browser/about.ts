import { byId, text } from './dom.js';
import type { Model } from './model.js';
import { rough } from './words.js';

/** Which peersync this is, in the last line of the page. */
export function showAbout(model: Model): void {
  model.follow(['status', 'tick'], () => {
    const { status } = model;
    if (status === undefined) return;
    const { version, pid, startedAt } = status;
    const since = startedAt === undefined ? '' : ` · runs for ${rough(model.now() - startedAt)}`;
    text(byId('about'), `peersync ${version}${pid === undefined ? '' : ` · pid ${pid}`}${since}`);
  });
}
