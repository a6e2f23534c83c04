import { showCharts } from './charts.js';
import { pageClock } from './clock.js';
import { showConcerns } from './concerns.js';
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
import { onRoute } from './route.js';
import { showStations } from './stations.js';
import { showTimeToSearch } from './time-to-search.js';
import { Why } from './why.js';
import { showWorld } from './world-view.js';

const model = new Model(pageClock);
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
