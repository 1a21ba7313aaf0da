import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { configLayers } from '../../settings/config.js'
import { lastRun } from '../../operations/run/status-file.js'
import { nextNight } from '../../operations/run/next-night.js'
import { sessionStatus } from '../../operations/session-status.js'
import { status } from '../../operations/status.js'
import { printable } from '../text/printable.js'
import { table } from '../text/table.js'
import { bytesText, countText, shareText } from '../text/units.js'
import { openWorkplace, sessionProgress } from '../workplace.js'
import { defineCommand } from './command.js'
import { lastRunText, periodText } from './doctor-text.js'
import { fieldsOf, wordOf } from './session-table.js'

const untitled = [{ title: '' }, { title: '' }] as const
/** Version numbers that the text of `status` names. */
const versionsShown = 5

const shareColumns = [{ title: 'bytes', align: 'right' }, { title: 'name' }] as const

export const command = defineCommand({
  positionals: {
    session: { type: 'string', describe: 'A session id: is it there, live, or was it removed' },
  },
  options: {
    top: { type: 'number', default: 0, describe: 'Name the largest projects, sessions and paths' },
  },
  run(context, { session, top }) {
    const { stores, config, machine } = openWorkplace(context)
    if (session !== undefined) return Promise.resolve({ report: sessionStatus(stores, session, { now: context.now(), machine }) })
    const report = status(
      stores,
      {
        top,
        configLayers: (project) => configLayers(config, project),
        nextNight: (store) => nextNight(store, config, { now: context.now(), machine }),
        lastRun,
      },
      { now: context.now(), machine, progress: sessionProgress(context, 'sessions') },
    )
    return Promise.resolve({ report, text: () => ({ body: body(report) }) })
  },
})

function body(report: Report): string {
  return fieldsOf(report.extra?.stores).map(storeText).join('\n')
}

function storeText(store: Readonly<Record<string, unknown>>): string {
  const facts = [
    ['format', wordOf(store.format)],
    ['sessions', wordOf(store.sessions)],
    ['checkpoints', wordOf(store.checkpoints)],
    ['backups', `${wordOf(store.backups)} (${bytesText(Number(store.bytes))})${versionsText(store.versions)}`],
    ['transcripts', `${bytesText(Number(store.transcriptBytes))}${historyText(store.historyBytes, Number(store.transcriptBytes))}`],
    ['retention', retentionText(store.retention)],
    ['next night', nextNightText(store.nextNight)],
    ['last run', lastRunText(store.lastRun)],
  ]
  return `${printable(wordOf(store.root))}\n${table(untitled, facts, '  ')}${topText(store.top)}`
}

/** What part of a transcript is history lines (R83). */
function historyText(historyBytes: unknown, bytes: number): string {
  return typeof historyBytes === 'number' && bytes > 0 ? `, ${shareText(historyBytes, bytes)} of it history lines` : ''
}

/** How many backups are version 1, 2, …; the first few versions are what matters (R93). */
function versionsText(versions: unknown): string {
  const counts = isFields(versions) ? Object.entries(versions).map(([name, count]) => `${name} ${wordOf(count)}`) : []
  if (counts.length === 0) return ''
  return `: ${counts.slice(0, versionsShown).join(', ')}${counts.length > versionsShown ? `, and ${String(counts.length - versionsShown)} later versions` : ''}`
}

function retentionText(retention: unknown): string {
  if (!isFields(retention)) return '-'
  if (retention.days === null) {
    return fieldsOf(retention.unusable).map((layer) => `unknowable: ${wordOf(layer.file)}: ${wordOf(layer.reason)}`).join('; ')
  }
  const differing = Array.isArray(retention.differing) && retention.differing.length > 0 ? `; others say less: ${retention.differing.map(wordOf).join(', ')}` : ''
  return `${periodText(retention.days)}, from ${wordOf(retention.source)}${differing}`
}

function nextNightText(night: unknown): string {
  if (!isFields(night)) return '-'
  if (typeof night.held === 'string') return `nothing is removed: ${night.held}; rewind-admin doctor --ack`
  return Object.entries(night)
    .map(([step, value]) => {
      if (!isFields(value)) return ''
      if (value.refused !== undefined) return `${step}: ${wordOf(value.refused)}`
      const what = step === 'expire' ? 'session' : 'removal'
      return `${step}: ${countText(Number(value.actions), what)}, ${bytesText(Number(value.bytes))}`
    })
    .join('; ')
}

function topText(top: unknown): string {
  if (!isFields(top)) return ''
  return Object.entries(top)
    .map(([kind, shares]) => {
      const rows = fieldsOf(shares).map((share) => [bytesText(Number(share.bytes)), `${wordOf(share.name)}${historyText(share.historyBytes, Number(share.bytes))}`])
      return rows.length === 0 ? '' : `\n  largest ${kind}\n${table(shareColumns, rows, '  ')}`
    })
    .join('')
}
