import { sessionTotal } from '../../operations/report/measure.js'
import { nightNotes, type StoreFacts } from '../../operations/report/gather.js'
import { growthWords } from '../html/chart.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { bytesText, countText, groupDigits, shareText } from '../text/units.js'

const untitled = [{ title: '' }, { title: '' }] as const

/** The text of `report`: each store with its areas, its largest parts, how it grew, and what went. */
export function reportText(stores: readonly StoreFacts[], top: number): string {
  return stores.map((facts) => storeText(facts, top)).join('\n')
}

function storeText(facts: StoreFacts, top: number): string {
  const { areas, sessions, projects, paths, removed, dead, trash } = facts
  const size = { title: 'bytes', align: 'right' } as const
  const count = { title: 'sessions', align: 'right' } as const
  const lists = [
    listText('projects', [size, count, { title: 'project' }], projects.slice(0, top).map((use) => [bytesText(use.bytes), groupDigits(use.sessions), use.project ?? '(unknown)'])),
    listText(
      'sessions',
      [size, { title: 'transcript', align: 'right' }, { title: 'history', align: 'right' }, { title: 'backups', align: 'right' }, { title: 'session' }],
      sessions.slice(0, top).map(({ row, size: of, total }) => [bytesText(total), bytesText(of.transcripts), row.historyBytes === undefined ? '-' : shareText(row.historyBytes, row.transcriptBytes), bytesText(of.backups), row.id]),
    ),
    listText('files by backup bytes', [size, { title: 'file' }], paths.slice(0, top).map(([path, bytes]) => [bytesText(bytes), path])),
    listText(
      'projects whose folder is gone',
      [{ title: 'projects', align: 'right' }, count, { title: 'folders' }],
      dead.slice(0, top).map((group) => [groupDigits(group.projects.length), groupDigits(group.sessions), group.pattern]),
    ),
    listText(
      'removed last',
      [{ title: 'when' }, { title: 'bytes', align: 'right' }, { title: 'session' }, { title: 'by' }],
      removed.slice(0, top).map((stone) => [stone.removedAt.slice(0, 16).replace('T', ' '), bytesText(stone.bytes), stone.session, stone.command]),
    ),
  ]
  const rows = [
    ['format', facts.format],
    ['sessions', `${groupDigits(sessions.length)}, ${bytesText(sessionTotal(areas))}`],
    ['transcripts', bytesText(areas.transcripts)],
    ['backups', `${bytesText(areas.backups)} in ${groupDigits(facts.backups)}`],
    ['companion files', bytesText(areas.companions)],
    ['leftovers', bytesText(areas.leftovers)],
    ['our own folder', `${bytesText(areas.own)}; in the trash ${countText(trash.entries, 'entry', 'entries')}, ${bytesText(trash.bytes)}`],
    ['growth', growthText(facts)],
    ...nightNotes(facts.night).map((note) => ['next night', note]),
  ]
  return `${printable(facts.root)}\n${table(untitled, rows, '  ')}${lists.join('')}`
}

function growthText({ history }: StoreFacts): string {
  const [first] = history
  const last = history.at(-1)
  return first === undefined || last === undefined ? 'no run was recorded yet' : growthWords(first, last, history.length)
}

function listText(title: string, columns: Parameters<typeof table>[0], rows: readonly (readonly string[])[]): string {
  return rows.length === 0 ? '' : `\n  ${title}\n${table(columns, rows, '  ')}`
}
