import type { Migration, MigrationRequest } from '../../formats/format.js'
import type { PlanItem } from '../../model/report.js'
import { movedPath } from '../../model/session-state.js'
import type { SessionReading, SessionRef } from '../../model/session.js'
import type { Resolutions } from './resolutions.js'

/** A session that is to be migrated, with what it said before. */
export interface Planned {
  readonly ref: SessionRef
  readonly migration: Migration
  readonly before: Resolutions
}

/** True for a session that was started in the old place of a project or its new one; where nothing says, its absolute paths do. */
export function isOfMoved({ folders, history }: SessionReading, { from, to }: NonNullable<MigrationRequest['move']>): boolean {
  const paths = folders.length > 0 ? folders : [...history.tracked]
  return paths.some((path) => movedPath(path, from, '') !== path || movedPath(path, to, '') !== path)
}

/** What is shown of a migration. */
export function itemsFor(ref: SessionRef, { files, drop, reason }: Migration): PlanItem[] {
  return [
    ...files.map(({ path }): PlanItem => ({ action: 'write', path, session: ref.id, bytes: 0, reason })),
    ...drop.map(({ path }): PlanItem => ({ action: 'trash', path, session: ref.id, bytes: 0, reason })),
  ]
}
