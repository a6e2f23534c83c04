import { showCharts } from './charts.js';
import { pageClock } from './clock.js';
import { Files } from './files.js';
import { showFolders } from './folders.js';
import { showKeys } from './keys.js';
import { Live } from './live.js';
import { showMirrors } from './mirrors.js';
import { Model } from './model.js';
import { showAbout, showConcerns, showEvents, showProblems, showStations, showWorld } from './overview.js';
import { Pausing } from './pausing.js';
import { showPeer } from './peer.js';
import { showTimeToSearch } from './time-to-search.js';
import { Why } from './why.js';

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
showKeys(files, why, pausing);
onRoute(files, why);

new Live(model, pageClock).connect();

/** Shows what the fragment of the address asks for: `#why=PATH`, `#files=STATUS&folder=NAME`. */
function onRoute(files: Files, why: Why): void {
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
