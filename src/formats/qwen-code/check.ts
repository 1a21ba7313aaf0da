import { join } from 'node:path'
import { probeFolder, type ProbedEntry } from '../../fs/probe.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Checkpoint, History } from '../../model/history.js'
import { parseBackupName } from '../../model/names.js'
import { membersOf, type SessionReading, type SessionRef } from '../../model/session.js'
import { backupFolderOf } from './layout.js'
import { failedReason } from './snapshots.js'

const promptShape = /^([0-9a-f-]{32,36})########[0-9]+$/

/** Findings of the format's own rules about one session (formats/qwen-code sections 6, 7, 10 and 11). */
export function checkSession(root: string, session: SessionRef, { history, busy, id }: SessionReading, hasTranscript: boolean): Finding[] {
  const folder = backupFolderOf(id)
  const entries = membersOf(session, 'backups').length === 0 ? [] : probeFolder({ path: join(root, folder), digest: 'none' }).entries.filter(({ node }) => node === 'file')
  const at = (name: string): { session: string; path: string } => ({ session: id, path: `${folder}/${name}` })
  return [
    ...failedSpans(history, id, folder),
    ...foreignPrompts(history, id, folder),
    ...sharedInodes(entries, id, folder),
    ...emptied(entries, at),
    ...(busy || !hasTranscript ? [] : unneeded(entries, history, at)),
  ]
}

/** Stretches of checkpoints in which a path cannot be restored because its backup failed (R46). */
function failedSpans({ checkpoints }: History, session: string, path: string): Finding[] {
  const open = new Map<string, { readonly from: Checkpoint; to: Checkpoint }>()
  const findings: Finding[] = []
  const close = (key: string): void => {
    const span = open.get(key)
    if (span === undefined) return
    open.delete(key)
    const where = span.from === span.to ? `checkpoint ${wordOf(span.from)}` : `checkpoints ${wordOf(span.from)} to ${wordOf(span.to)}`
    findings.push(finding('failed-backup', `${key} cannot be restored at ${where}: ${failedReason}`, { session, path }))
  }
  for (const checkpoint of checkpoints) {
    for (const key of [...open.keys()]) if (checkpoint.files.get(key)?.unusable !== failedReason) close(key)
    for (const [key, record] of checkpoint.files) {
      if (record.unusable !== failedReason) continue
      const span = open.get(key)
      if (span === undefined) open.set(key, { from: checkpoint, to: checkpoint })
      else span.to = checkpoint
    }
  }
  for (const key of [...open.keys()]) close(key)
  return findings
}

/** The agent refuses prompt ids of another session: the bytes are there and cannot be reached (R63). */
function foreignPrompts({ checkpoints }: History, session: string, path: string): Finding[] {
  const others = checkpoints.flatMap((checkpoint) => {
    const owner = promptShape.exec(wordOf(checkpoint))?.[1]
    return owner === undefined || owner === session ? [] : [owner]
  })
  const [first] = others
  if (first === undefined) return []
  return [finding('unreachable-checkpoints', `${String(others.length)} checkpoints carry prompt ids of session ${first}; the agent refuses them`, { session, path })]
}

function sharedInodes(entries: readonly ProbedEntry[], session: string, path: string): Finding[] {
  const shared = entries.filter(({ links, name }) => links > 1 && parseBackupName(name) !== undefined)
  const [first] = shared
  if (first === undefined) return []
  const message = `${String(shared.length)} backups, ${first.name} among them, have another name elsewhere; the agent writes into backups, and then both change`
  return [finding('shared-inode', message, { session, path })]
}

/** An empty backup is legal; where every other version of its path has bytes it is worth a look. */
function emptied(entries: readonly ProbedEntry[], at: (name: string) => { session: string; path: string }): Finding[] {
  const filled = new Set(entries.flatMap(({ name, size }) => (size > 0 ? (parseBackupName(name)?.pathHash ?? []) : [])))
  return entries.flatMap(({ name, size }) => {
    const parsed = size === 0 ? parseBackupName(name) : undefined
    return parsed !== undefined && filled.has(parsed.pathHash) ? [finding('empty-backup', 'it is empty, and other versions of its path are not', at(name))] : []
  })
}

/** Backups that no checkpoint needs: dropped by the agent, or never named at all (section 11; R40). */
function unneeded(entries: readonly ProbedEntry[], { references }: History, at: (name: string) => { session: string; path: string }): Finding[] {
  return entries.flatMap(({ name }) => {
    const version = parseBackupName(name)?.version
    const reference = references.get(name)
    if (version === undefined) return []
    if (reference?.dropped === true) return [finding('dropped-backup', 'only checkpoints that the agent dropped name it: beyond its cap, or taken back by a rewind', at(name))]
    // The generic check leaves first versions out, since other agents keep them without a line.
    return reference === undefined && version === 1 ? [finding('unreferenced-backup', 'no line of the transcript names it; it is kept', at(name))] : []
  })
}

/** The prompt id of a checkpoint, which people know it by. */
function wordOf({ id, aliases }: Checkpoint): string {
  return aliases?.[0] ?? id
}
