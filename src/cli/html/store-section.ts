import { placeText, type Finding } from '../../model/finding.js'
import { sessionTotal } from '../../operations/report/measure.js'
import { nightNotes, type StoreFacts } from '../../operations/report/gather.js'
import { bytesText, countText, groupDigits } from '../text/units.js'
import { growthChart } from './chart.js'
import { html, type Markup } from './markup.js'
import { dataTable, timeMarkup, timeOf } from './table.js'

/** Everything about one store: what there is, how it grew, what comes next, what went, and what is wrong. */
export function storeSection(facts: StoreFacts, id: string): Markup {
  return html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title"><code>${facts.root}</code></h2>
<p class="soft">${facts.format}</p>
${overview(facts)}
${facts.errors.map(({ message }) => html`<p class="note">${message}</p>`)}
${part(id, 'growth', 'Growth', growthChart(facts.history, `${id}-chart`))}
${part(id, 'findings', 'Findings', findings(facts.night.findings, id))}
${part(id, 'next', 'The next night', nextNight(facts, id))}
${part(id, 'removed', 'What the last nights removed', removed(facts, id))}
${part(id, 'projects', 'Projects', projects(facts, id))}
${part(id, 'sessions', 'Sessions', sessions(facts, id))}
${part(id, 'files', 'Files with the most backup bytes', files(facts, id))}
${facts.dead.length === 0 ? undefined : part(id, 'gone', 'Projects whose folder is gone', gone(facts, id))}
</section>
`
}

function part(id: string, name: string, title: string, content: Markup): Markup {
  return html`<h3 id="${id}-${name}">${title}</h3>
${content}`
}

function overview({ areas, sessions: all, backups, trash, retention, night, versions, history }: StoreFacts): Markup {
  const last = history.at(-1)
  const period = retention.kind === 'unknowable' ? 'unknowable: nothing expires until the settings are mended' : countText(retention.days, 'day')
  const counts = versions.slice(0, 5).map(([version, count]) => `v${String(version)} ${groupDigits(count)}`)
  const source = retention.kind === 'unknowable' || retention.source === 'default' ? undefined : `${retention.source.layer}: ${retention.source.file}`
  return html`<dl class="cards">
<div><dt>Sessions</dt><dd>${groupDigits(all.length)}</dd></div>
<div><dt>Sessions take</dt><dd>${bytesText(sessionTotal(areas))}</dd></div>
<div><dt>Transcripts</dt><dd>${bytesText(areas.transcripts)}</dd></div>
<div><dt>Backups (${groupDigits(backups)})</dt><dd>${bytesText(areas.backups)}</dd></div>
<div><dt>Beside the transcripts</dt><dd>${bytesText(areas.companions + areas.leftovers)}</dd></div>
<div><dt>Our own folder; trash ${bytesText(trash.bytes)}</dt><dd>${bytesText(areas.own)}</dd></div>
<div><dt>Kept for</dt><dd${retention.kind === 'unknowable' ? html` class="words"` : undefined}>${period}</dd></div>
<div><dt>Next night removes</dt><dd>${bytesText(night.plan.reduce((sum, { bytes }) => sum + bytes, 0))}</dd></div>
</dl>
<p class="soft">${source === undefined ? undefined : html`The period is set by ${source}. `}${counts.length === 0 ? undefined : html`Backups by version: ${counts.join(', ')}${versions.length > 5 ? ', …' : ''}. `}${
    last === undefined ? 'No run of a job is recorded yet.' : html`Last run: ${last.job}, ${timeMarkup(timeOf(last.time))} UTC, exit code ${last.exitCode}.`
  }</p>`
}

function findings(found: readonly Finding[], id: string): Markup {
  if (found.length === 0) return html`<p>Nothing at or above a warning was found (metadata only; <code>rewind-admin verify</code> reads the bytes).</p>`
  const columns = [
    { title: 'severity', kind: 'severity' },
    { title: 'finding' },
    { title: 'what', kind: 'words' },
    { title: 'session' },
    { title: 'where', kind: 'words' },
    { title: 'what mends it', kind: 'words' },
  ] as const
  const rows = found.map((item) => [item.severity, item.id, item.message, item.session, item.place === undefined ? '' : placeText(item.place), item.remedy])
  return dataTable({ id: `${id}-findings-table`, label: 'Findings', columns, rows })
}

function nextNight({ night, trash }: StoreFacts, id: string): Markup {
  const { plan, kept } = night
  const bytes = plan.reduce((sum, item) => sum + item.bytes, 0)
  const rows = plan.map(({ action, path, bytes: size, reason }) => [path, action, size, reason])
  const columns = [{ title: 'path', kind: 'name' }, { title: 'action' }, { title: 'size', kind: 'share' }, { title: 'reason', kind: 'words' }] as const
  return html`<p>It would move ${countText(plan.length, 'item')} (${bytesText(bytes)}) into the trash, remove ${countText(trash.due, 'entry', 'entries')} (${bytesText(trash.dueBytes)}) of the trash for good, and keep ${countText(kept.length, 'session')}.</p>
${nightNotes(night).map((note) => html`<p class="note">${note}</p>`)}
${rows.length === 0 ? undefined : dataTable({ id: `${id}-next-table`, label: 'What the next night would remove', columns, rows })}`
}

function removed({ removed: tombstones, trash, history }: StoreFacts, id: string): Markup {
  const emptied = `In the trash now: ${countText(trash.entries, 'entry', 'entries')}, ${bytesText(trash.bytes)}.`
  const nights = history.filter(({ removedBytes, removedSessions }) => removedBytes > 0 || removedSessions > 0).length
  if (tombstones.length === 0) return html`<p>No session was removed yet. ${emptied}</p>`
  const columns = [
    { title: 'session', kind: 'name' },
    { title: 'size', kind: 'share' },
    { title: 'removed', kind: 'time' },
    { title: 'last active', kind: 'time' },
    { title: 'by' },
    { title: 'project', kind: 'words' },
    { title: 'why', kind: 'words' },
    { title: 'run', kind: 'words' },
  ] as const
  const rows = tombstones.map((stone) => [stone.session, stone.bytes, timeOf(stone.removedAt), timeOf(stone.lastActivity), stone.command, stone.project, stone.reason, stone.runId])
  return html`<p>${countText(tombstones.length, 'session')} in all; ${countText(nights, 'recorded run')} removed something. ${emptied} What is still there comes back with <code>rewind-admin trash restore</code> and the run. Prompt history and project memory are left on purpose.</p>
${dataTable({ id: `${id}-removed-table`, label: 'Removed sessions', columns, rows, most: 200 })}`
}

function projects({ projects: all }: StoreFacts, id: string): Markup {
  const columns = [
    { title: 'project', kind: 'name' },
    { title: 'size', kind: 'share' },
    { title: 'sessions', kind: 'number' },
    { title: 'last active', kind: 'time' },
  ] as const
  const rows = all.map(({ project, bytes, sessions: count, lastActivity }) => [project, bytes, count, lastActivity])
  return rows.length === 0 ? html`<p>None.</p>` : dataTable({ id: `${id}-projects-table`, label: 'Bytes per project', columns, rows })
}

function sessions({ sessions: all }: StoreFacts, id: string): Markup {
  const columns = [
    { title: 'session', kind: 'name' },
    { title: 'size', kind: 'share' },
    { title: 'transcripts', kind: 'bytes' },
    { title: 'backups', kind: 'bytes' },
    { title: 'checkpoints', kind: 'number' },
    { title: 'last active', kind: 'time' },
    { title: 'project', kind: 'words' },
  ] as const
  const rows = all.map(({ row, size, total }) => [row.id, total, size.transcripts, size.backups, row.checkpoints, row.lastActivity, `${row.project ?? ''}${row.live ? ' (open now)' : ''}`])
  return rows.length === 0 ? html`<p>None.</p>` : dataTable({ id: `${id}-sessions-table`, label: 'Bytes per session', columns, rows })
}

function files({ paths }: StoreFacts, id: string): Markup {
  const columns = [{ title: 'file', kind: 'name' }, { title: 'size', kind: 'share' }] as const
  return paths.length === 0 ? html`<p>None.</p>` : dataTable({ id: `${id}-files-table`, label: 'Backup bytes per file', columns, rows: paths, most: 50 })
}

function gone({ dead }: StoreFacts, id: string): Markup {
  const columns = [{ title: 'folders', kind: 'name' }, { title: 'projects', kind: 'number' }, { title: 'sessions', kind: 'number' }] as const
  const rows = dead.map(({ pattern, projects: all, sessions: count }) => [pattern, all.length, count])
  return html`<p><code>rewind-admin purge</code> removes all state of a project; <code>rewind-admin report --json</code> names each of them.</p>
${dataTable({ id: `${id}-gone-table`, label: 'Projects whose folder is gone', columns, rows })}`
}
