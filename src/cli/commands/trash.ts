import { touchTime } from '../../plan/folder-times.js'
import { execFileSync } from 'node:child_process'
import type { Store } from '../../formats/format.js'
import { NoMatchError, UsageError } from '../../model/errors.js'
import { ExitCode } from '../../model/exit-code.js'
import { noItems, type ErrorItem, type Json, type Report } from '../../model/report.js'
import { forgetReturned } from '../../operations/capped.js'
import { sweepRedo } from '../../operations/restore/sweep-redo.js'
import { selectSessions } from '../../operations/select.js'
import { restoreFromTrash } from '../../plan/restore.js'
import { isPartOf } from '../../plan/run-id.js'
import { emptyTrash, entriesToEmpty, listTrash, type EmptyOptions, type TrashEntry } from '../../plan/trash.js'
import type { CommandContext } from '../context.js'
import { withLock } from '../locked.js'
import { table } from '../text/table.js'
import { bytesText, countText } from '../text/units.js'
import { openWorkplace, type Workplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { durationOption, sizeOption } from './durations.js'
import { fieldsOf, wordOf } from './session-table.js'

export const command = defineCommand({
  positionals: {
    act: { choices: ['list', 'restore', 'empty'] as const, demandOption: true, describe: 'What to do' },
    run: { type: 'string', describe: 'The run to bring back' },
    session: { type: 'string', describe: 'Only this session of the run' },
  },
  options: {
    'older-than': { type: 'string', describe: 'With empty: what was put there longer ago (the grace period, 7d)' },
    'max-bytes': { type: 'string', describe: 'With empty: only the oldest entries, until the trash takes up no more than this (500M, 2G)' },
    'apply': { type: 'boolean', describe: 'With empty: act. Restoring only adds, so it always acts' },
  },
  async run(context, { act, run, session, olderThan, maxBytes, apply }) {
    const place = openWorkplace(context)
    if (act !== 'restore' && run !== undefined) throw new UsageError(`trash ${act} takes no run`)
    if (act === 'list') return { report: listed(place, 'trash'), text: () => ({ body: listText(listed(place, 'trash')) }) }
    if (act === 'restore') {
      if (run === undefined) throw new UsageError('trash restore needs a run', { hint: 'rewind-admin trash list shows them' })
      return { report: await restored(context, place, run, session) }
    }
    const limit = sizeOption('--max-bytes', maxBytes)
    // A budget is for a disk that fills: it does not wait for the grace period.
    const olderThanMs = durationOption('--older-than', olderThan) ?? (limit === undefined ? place.config.graceMs : 0)
    return { report: await emptied(context, place, { olderThan: olderThanMs, now: context.now(), ...(limit === undefined ? {} : { maxBytes: limit }) }, apply === true) }
  },
})

const columns = [{ title: 'run' }, { title: 'session' }, { title: 'put there' }, { title: 'by' }, { title: 'bytes', align: 'right' }, { title: 'reason' }] as const

function listed(place: Workplace, command: string): Report {
  const entries = place.stores.flatMap((store) => listTrash(store))
  return reportOf(command, place.stores, { entries: entries.length, bytes: total(entries) }, { extra: { entries: entries.map(entryJson) } })
}

function listText(report: Report): string {
  const rows = fieldsOf(report.extra?.entries).map((entry) => [
    wordOf(entry.runId),
    wordOf(entry.session),
    wordOf(entry.trashedAt).slice(0, 16).replace('T', ' '),
    wordOf(entry.command),
    bytesText(Number(entry.bytes)),
    wordOf(entry.reason),
  ])
  return rows.length === 0 ? 'The trash is empty.\n' : `${table(columns, rows)}${countText(rows.length, 'entry', 'entries')}\n`
}

async function restored(context: CommandContext, place: Workplace, run: string, session: string | undefined): Promise<Report> {
  const holders = place.stores.filter((store) => listTrash(store).some((entry) => isPartOf(entry.runId, run)))
  if (holders.length === 0) throw new NoMatchError(`the trash holds nothing of run ${run}`, { hint: 'rewind-admin trash list' })
  const ids = new Set(holders.flatMap((store) => listTrash(store).flatMap((entry) => (isPartOf(entry.runId, run) ? [entry.session] : []))))
  const [only] = session === undefined ? [] : selectSessions([...ids].map((id) => ({ id })), [session])
  const sessions = new Set<string>()
  const paths: string[] = []
  const errors: ErrorItem[] = []
  for (const store of holders) {
    await withLock(context, place, store, 'trash restore', async () => {
      const exactTime = touchTime((file, args) => execFileSync(file, args, { stdio: 'ignore' }))
      // What was taken last comes back first: a folder before the single files that were taken out of it earlier.
      for (const part of partsOf(store, run, only?.id)) {
        const result = await restoreFromTrash(store, part, { exactTime, ...(only === undefined ? {} : { session: only.id }) })
        for (const id of result.restored) {
          sessions.add(id)
          forgetReturned(store, id)
        }
        paths.push(...result.paths)
        errors.push(...result.errors)
      }
    })
  }
  const summary = { run, restored: sessions.size, paths: paths.length }
  return reportOf('trash', holders, summary, { applied: true, runId: run, errors, extra: { restored: [...sessions], paths } })
}

/** The run and its parts as they are in the trash of a store, or those that hold a session; the last one first. */
function partsOf(store: Store, run: string, session: string | undefined): string[] {
  const held = listTrash(store).filter((entry) => isPartOf(entry.runId, run) && (session === undefined || entry.session === session))
  return [...new Set(held.map((entry) => entry.runId))].sort().reverse()
}

async function emptied(context: CommandContext, place: Workplace, options: EmptyOptions, apply: boolean): Promise<Report> {
  const removed: TrashEntry[] = []
  const errors: ErrorItem[] = []
  let bytes = 0
  for (const store of place.stores) {
    if (!apply) {
      const due = entriesToEmpty(listTrash(store), options)
      removed.push(...due)
      bytes += total(due)
      continue
    }
    await withLock(context, place, store, 'trash empty', async () => {
      const result = await emptyTrash(store, options)
      sweepRedo(store)
      removed.push(...result.removed)
      bytes += result.bytes
      errors.push(...result.errors)
    })
  }
  const plan = removed.map((entry) => ({ action: 'empty', path: entry.folder, session: entry.session, bytes: entry.bytes, reason: entry.reason }))
  const next = !apply && plan.length > 0 ? { next: 'Run it again with --apply to act.' } : {}
  return { ...reportOf('trash', place.stores, { entries: removed.length, bytes }, { applied: apply, errors }), plan, ...next }
}

function reportOf(
  command: string,
  stores: readonly Store[],
  summary: Readonly<Record<string, Json>>,
  parts: { readonly applied?: boolean; readonly runId?: string; readonly errors?: readonly ErrorItem[]; readonly extra?: Readonly<Record<string, Json>> },
): Report {
  const errors = parts.errors ?? []
  return {
    command,
    roots: stores.map((store) => store.root),
    applied: parts.applied ?? false,
    ...(parts.runId === undefined ? {} : { runId: parts.runId }),
    summary,
    ...noItems,
    errors,
    exitCode: errors.length > 0 ? ExitCode.partial : ExitCode.done,
    ...(parts.extra === undefined ? {} : { extra: parts.extra }),
  }
}

function entryJson(entry: TrashEntry): Json {
  return {
    runId: entry.runId,
    session: entry.session,
    command: entry.command,
    reason: entry.reason,
    project: entry.project ?? null,
    trashedAt: entry.trashedAt === undefined ? null : new Date(entry.trashedAt).toISOString(),
    bytes: entry.bytes,
    paths: entry.paths,
    receiptLost: entry.receiptLost,
  }
}

function total(entries: readonly TrashEntry[]): number {
  return entries.reduce((sum, entry) => sum + entry.bytes, 0)
}
