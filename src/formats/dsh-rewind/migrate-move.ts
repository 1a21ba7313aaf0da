import { finding } from '../../model/finding.js'
import { movedPath } from '../../model/session-state.js'
import type { SessionRef } from '../../model/session.js'
import type { MigratedFile, Migration, MigrationRequest } from '../format.js'
import { isFinished } from './journal.js'
import { inGroup, storeVersion } from './layout.js'
import { madeFrom } from './migrate-files.js'
import { fieldsOf, withFields } from './migrate-records.js'
import type { SessionState } from './reading.js'
import type { Fields } from '../../model/fields.js'
import { readRecordBytes } from './records.js'

type Move = NonNullable<MigrationRequest['move']>

/**
 * What takes the records of a session along to the place that its project was moved to: paths and pins at or below the old
 * folder become those of the new one, by whole names (R45). Bytes, names and conversation stay. Open journals hold paths
 * that they are followed by: they have to be ended first. `undefined` for a session without a path there.
 */
export function planMove(root: string, ref: SessionRef, state: SessionState, move: Move): Migration | { readonly refusal: string } | undefined {
  const { records, journals, log } = state
  if (records.newer) return { refusal: 'its store version is newer than this version knows' }
  const files: MigratedFile[] = []
  const keys = new Set<string>()
  let foreign = false
  for (const record of [...records.groups.values()].flat()) {
    if (record.kind === 'newer') continue
    if (record.file !== undefined) keys.add(record.file)
    const bytes = readRecordBytes(`${root}/${ref.id}`, record.group, record.name)
    const changes = bytes === undefined ? {} : changesOf(fieldsOf(bytes), move)
    if (Object.keys(changes).length === 0) continue
    foreign ||= record.foreign
    const path = `${ref.id}/${inGroup(record.group, record.name)}`
    files.push(madeFrom(root, path, path, (content) => withFields(content, changesOf(fieldsOf(content), move))))
  }
  const startedThere = log?.cwd !== undefined && movedPath(log.cwd, move.from, move.to) !== log.cwd
  if (files.length === 0 && !startedThere) return undefined
  const open = journals.find((journal) => journal.kind === 'journal' && !isFinished(journal))
  if (open !== undefined) return { refusal: `a restore of the agent did not end (${open.name}); end it with "rewind-admin repair --journals" first` }
  if (foreign) return { refusal: 'another program wrote records of this project into it' }
  const clash = [...keys].find((key) => movedPath(key, move.from, move.to) !== key && keys.has(movedPath(key, move.from, move.to)))
  if (clash !== undefined) return { refusal: `it holds records of ${clash} and of ${movedPath(clash, move.from, move.to)}, which would be one file` }
  const message = `the conversation of ${ref.id} still names ${move.from}: it is the agent's own; start it in ${move.to}`
  return {
    reason: `its project moved from ${move.from} to ${move.to}`,
    files,
    drop: [],
    newKey: (key) => movedPath(key, move.from, move.to),
    findings: startedThere ? [finding('conversation-left', message, { session: ref.id, path: log.file.path })] : [],
  }
}

/** The fields of a record that name the old folder, or something below it, with what they say afterwards. */
function changesOf(fields: Fields, { from, to }: Move): Fields {
  const own = fields.store === storeVersion ? ['file', 'parent'] : ['path']
  return Object.fromEntries(
    own.flatMap((key) => {
      const value = fields[key]
      const moved = typeof value === 'string' ? movedPath(value, from, to) : value
      return moved === value ? [] : [[key, moved]]
    }),
  )
}
