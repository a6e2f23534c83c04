import { showCharts } from './charts.js';
import { pageClock } from './clock.js';
import { attr, byId, h, icon, prose, Rows, reshape, show, text } from './dom.js';
import { showEvents } from './events.js';
import { Files } from './files.js';
import { showFolders } from './folders.js';
import { showKeys } from './keys.js';
import { Live } from './live.js';
import { showMirrors } from './mirrors.js';
import { Model } from './model.js';
import { Pausing } from './pausing.js';
import { showPeer } from './peer.js';
import { showProblems } from './problems.js';
import { showStations } from './stations.js';
import { showTimeToSearch } from './time-to-search.js';
import { Why } from './why.js';
import { type Concern, concernsOf, rough } from './words.js';
import { showWorld } from './world-view.js';

const model = new Model(pageClock);
showAbout(model);
showWorld(model);
showStations(model);
showConcerns(model);
showCharts(model);
showTimeToSearch(model);
showFolders(model);
showMirrors(model);
showProblems(model);
showPeer(model);
showEvents(model);

const files = new Files(model, pageClock);
const why = new Why(model);
const pausing = new Pausing(model);
showKeys({ files, why, pausing });
onRoute({ files, why });

new Live(model, pageClock).connect();

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

/** What needs a person, if anything does. */
export function showConcerns(model: Model): void {
  const rows = new Rows<Concern>(
    byId('concerns'),
    ({ key }) => key,
    () => {
      const shape = icon('warn');
      const about = h('a', {});
      const words = h('span', { class: 'words' });
      const element = h('li', {}, shape, h('p', {}, about, ' ', words));
      return {
        element,
        update: (concern) => {
          attr(element, 'class', `s-${concern.level}`);
          reshape(shape, concern.level === 'bad' ? 'error' : 'warn');
          attr(about, 'href', concern.href);
          text(about, concern.about);
          prose(words, concern.text);
        },
      };
    },
  );
  model.follow(['status'], () => {
    const concerns = model.status === undefined ? [] : concernsOf(model.status);
    show(byId('attention'), concerns.length > 0);
    rows.set(concerns);
  });
}

/** Shows what the fragment of the address asks for: `#why=PATH`, `#files=STATUS&folder=NAME`. */
function onRoute({ files, why }: { readonly files: Files; readonly why: Why }): void {
  const go = () => {
    const asked = new URLSearchParams(location.hash.slice(1).replaceAll('+', '%2B'));
    const path = asked.get('why');
    const status = asked.get('files');
    if (path !== null && path !== '') void why.explain(path);
    if (status !== null) files.choose(status, asked.get('folder') ?? '');
  };
  addEventListener('hashchange', go);
  go();
}
