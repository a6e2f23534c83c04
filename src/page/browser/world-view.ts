import { attr, byId, prose, text } from './dom.js';
import type { Model } from './model.js';
import { ahead, together } from './words.js';
import { type Level, lostWorld, worldOf } from './world.js';

const FAVICONS: Readonly<Record<Level, string>> = {
  ok: '/assets/favicon-ok.svg',
  busy: '/assets/favicon-busy.svg',
  warn: '/assets/favicon-wait.svg',
  bad: '/assets/favicon-bad.svg',
};

/** The state of the world: the sentence at the top, the title and icon of the window, and whether the page is up to date. */
export function showWorld(model: Model): void {
  const [sentence, detail, announce] = [byId('world'), byId('world-detail'), byId('announce')];
  const [favicon, connection] = [byId('favicon'), byId('connection-text')];
  let announced = '';

  model.follow(['status', 'connection', 'tick'], () => {
    const { status, lost } = model;
    attr(
      document.body,
      'data-connection',
      lost !== undefined ? 'lost' : status === undefined ? 'connecting' : 'open',
    );
    text(
      connection,
      lost !== undefined
        ? `tries again ${ahead(lost.nextAt, model.here())}`
        : status === undefined
          ? 'connecting'
          : 'live',
    );
    if (lost === undefined && status === undefined) return;
    const waiting = status === undefined ? undefined : status.items.pending + status.items.accepted;
    const world =
      lost !== undefined || status === undefined
        ? lostWorld(lost?.at ?? model.here(), model.here(), waiting)
        : worldOf(status, model.now());
    attr(document.body, 'data-level', world.level);
    attr(favicon, 'href', FAVICONS[world.level]);
    text(sentence, together(world.sentence));
    prose(detail, world.detail);
    const title = `${world.title} · peersync`;
    if (document.title !== title) document.title = title;
    // Who listens hears of each change, and not of each second.
    const gist = `${world.level} ${world.sentence.replaceAll(/[\d.,]+( (d|h|min|s|ms))?/g, '')}`;
    if (gist !== announced) text(announce, world.sentence);
    announced = gist;
  });
}
