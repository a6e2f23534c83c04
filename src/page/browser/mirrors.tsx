import { numberText as count, counted, escapeInvisible } from '../../lib/text.js';
import { formatBytes } from '../../lib/units.js';
import type { MirrorFailure, MirrorReport } from '../../mirror/record.js';
import type { MirrorsAnswer, MirrorsRequest } from '../api.js';
import {
  ActionButton,
  ConfirmedAction,
  Icon,
  Name,
  type Props,
  Prose,
  SectionHead,
  Table,
} from './components.js';
import { post } from './model.js';
import { mirrorConditions, timeAgo, timeUntil } from './words.js';

/** The mirrors: files that follow something in the peer. Mirrors with conditions come first. */
export function Mirrors({ model }: Props) {
  const { mirrors = [], mirrorRoot = '' } = model.status ?? {};
  const run = async () => {
    const answer = await post<MirrorsAnswer>('/api/mirrors/run');
    const changed = answer.mirrors.filter((mirror) => mirror.changed === true).length;
    return `Asked for ${counted(answer.mirrors.length, 'mirror')}: ${changed === 0 ? 'nothing changed' : `${count(changed)} changed`}.`;
  };
  const cells = (mirror: MirrorReport) => {
    const { name, kind, path, condition, rows, bytes, nextAt, running, succeededAt, changedAt } =
      mirror;
    const conditions = mirrorConditions(mirror, mirrorRoot);
    const times = [succeededAt, changedAt].map((at) =>
      at === undefined ? 'never' : timeAgo(at, model.now()),
    );
    return [
      <>
        <div class="wrapped">
          <span class="name">
            <Name of={name} />
          </span>
          <span class="hint">{kind}</span>
        </div>
        <span class="path">
          <Name of={path} />
        </span>
      </>,
      ...times,
      rows === undefined ? '–' : count(rows),
      bytes === undefined ? '–' : formatBytes(bytes),
      running ? 'running' : nextAt === undefined ? '–' : timeUntil(nextAt, model.now()),
      conditions.length > 0 && (
        <ul class="conditions">
          {conditions.map(({ level, text }) => (
            <li key={text} class={`line s-${level}`}>
              <Icon of={level === 'bad' ? 'error' : level} />
              <p>
                <Prose text={text} />
              </p>
              {level === 'bad' && condition && (
                <AcceptMirror model={model} name={name} path={path} condition={condition} />
              )}
            </li>
          ))}
        </ul>
      ),
    ];
  };
  return (
    <>
      <SectionHead id="mirrors" title="Mirrors">
        {mirrors.length > 0 && (
          <ActionButton model={model} work={run}>
            Update all now
          </ActionButton>
        )}
      </SectionHead>
      <Table
        caption="Mirrored files, with when they were last brought up to date and last changed"
        what="mirror"
        columns={['Mirror', 'Up to date', 'Changed', 'Rows', 'Size', 'Next']}
        rows={mirrors.toSorted((a, b) => gravity(b) - gravity(a))}
        cells={cells}
        keyOf={({ name }) => name}
        empty="Nothing is mirrored. Name tables and shared objects of the peer under `mirror` in the configuration, and they become files here."
      />
    </>
  );
}

/** Orders the mirrors: the larger, the graver. */
function gravity({ condition, failure, conflicts = [] }: MirrorReport): number {
  return condition ? 3 : conflicts.length > 0 ? 2 : failure ? 1 : 0;
}

interface AcceptMirrorProps extends Props {
  readonly name: string;
  readonly path: string;
  readonly condition: MirrorFailure;
}

/** The button that replaces the mirrored file by the version of the peer. */
function AcceptMirror({ model, name, path, condition }: AcceptMirrorProps) {
  const accept = async () => {
    const { mirrors } = await post<MirrorsAnswer>('/api/mirrors/accept', {
      names: [name],
    } satisfies MirrorsRequest);
    const isRemoved = mirrors.some(
      ({ absentSince, isOver }) => absentSince !== undefined || isOver,
    );
    return isRemoved
      ? `${escapeInvisible(path)} was removed, until the peer has it again.`
      : `${escapeInvisible(name)} follows the peer again.`;
  };
  return (
    <ConfirmedAction
      model={model}
      work={accept}
      short="Accept"
      label={`Accept what the peer has of ${escapeInvisible(name)}`}
      title={`Take what the peer has of ${escapeInvisible(name)}?`}
      // Accepting changes the file, so that part of the message would be wrong here.
      text={`${condition.message.replace(/; the file stays as it was(?=\.)/, '')} ${condition.hint}`}
      yes="Accept it"
    />
  );
}
