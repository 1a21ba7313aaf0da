import { parentOf } from '../../fs/safe-path.js'
import type { Json } from '../../model/report.js'
import type { SessionRef } from '../../model/session.js'

interface Row {
  project: string | undefined
  scanned: number
  removed: number
  bytes: number
}

/** Counts per project folder, so that whoever shares a store sees what was done to whom (R09, R17). */
export class ProjectTotals {
  readonly #rows = new Map<string, Row>()

  kept(ref: SessionRef, project: string | undefined): void {
    this.#row(ref, project)
  }

  removed(ref: SessionRef, project: string | undefined, bytes: number): void {
    const row = this.#row(ref, project)
    row.removed += 1
    row.bytes += bytes
  }

  nothingRemoved(): void {
    for (const row of this.#rows.values()) Object.assign(row, { removed: 0, bytes: 0 })
  }

  /** One row per folder that holds sessions: a folder may hold several projects, then the first one is named (R25). */
  rows(): Json {
    return [...this.#rows].map(([folder, { project, scanned, removed, bytes }]) => {
      return { folder, ...(project === undefined ? {} : { project }), scanned, kept: scanned - removed, removed, bytes }
    })
  }

  #row(ref: SessionRef, project: string | undefined): Row {
    const folder = parentOf((ref.members.find((member) => member.kind !== 'leftover' && member.kind !== 'backups') ?? ref.members[0])?.path ?? '')
    const row = this.#rows.get(folder) ?? { project: undefined, scanned: 0, removed: 0, bytes: 0 }
    row.project ??= project
    row.scanned += 1
    this.#rows.set(folder, row)
    return row
  }
}
