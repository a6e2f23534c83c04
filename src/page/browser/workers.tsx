import { amountText as amount, numberText as count, counted } from '../../lib/text.js';
import { durationText } from '../../lib/units.js';
import { type FleetReport, idleText, noPushText, type WorkerStatus } from '../../report/fleet.js';
import { Icon, Name, type Props, SectionHead, Table } from './components.js';
import { timeAgo } from './words.js';

/** The machines that help; nothing if the configuration has no `fleet`. */
export function Workers({ model }: Props) {
  const fleet = model.status?.fleet;
  if (fleet === undefined) return null;
  const cells = (worker: WorkerStatus) => {
    const { active, done, failed, host, perSecond, pid, seenAt, slots, version } = worker;
    const idle = idleText(worker);
    const trouble = idle || noPushText(worker);
    return [
      <div class="wrapped" key="head">
        <span class="name">
          <Name of={host} />
        </span>
        <span class="hint">
          version <Name of={version} /> · process {pid} · seen {timeAgo(seenAt, model.now())}
        </span>
      </div>,
      `${count(active)} of ${count(slots)}`,
      perSecond === undefined ? '–' : amount(perSecond),
      count(done),
      count(failed),
      trouble !== '' && (
        <ul class="conditions">
          <li class="line s-warn">
            <Icon of="warn" />
            <p>
              {idle === '' ? 'Pushes nothing' : 'Takes no jobs'}: it <Name of={trouble} />.
            </p>
          </li>
        </ul>
      ),
    ];
  };
  return (
    <>
      <SectionHead id="workers" title="Workers">
        <p class="hint">{queueText(fleet, model.now())}</p>
      </SectionHead>
      <Table
        caption="The machines that help, with their jobs and their speed"
        what="worker"
        columns={['Machine', 'Jobs', 'Documents/s', 'Done', 'Failed']}
        rows={fleet.workers}
        cells={cells}
        keyOf={({ host, id }) => `${host} ${id}`}
        empty="No worker is there, so that this machine does everything. Start `peersync worker` on another machine."
      />
    </>
  );
}

/** Returns how the queue stands. */
function queueText({ active, failure, oldestSince, redis, waiting }: FleetReport, now: number) {
  if (redis === 'connecting') return 'Connecting with Redis';
  if (redis === 'away') return 'Redis does not answer; this machine does everything';
  if (redis === 'loading') return 'Redis is loading its data; this machine does everything';
  if (failure !== undefined) return 'Another peersync uses the same prefix in Redis';
  const age =
    oldestSince === undefined
      ? ''
      : `, the oldest for ${durationText(Math.max(0, now - oldestSince))}`;
  return `${counted(active, 'job')} under way, ${count(waiting)} waiting${age}`;
}
