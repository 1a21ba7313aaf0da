import { posix } from 'node:path'
import type { Store } from '../../formats/format.js'
import type { PathProbe } from '../../fs/path-probe.js'
import { isConversation } from '../../model/session.js'

/** Projects whose folder is gone, taken together by where they were and what they were called (R91). */
export interface DeadProjects {
  /** The folder above, and the name with its last part left open: `/tmp/run-*`. */
  readonly pattern: string
  readonly projects: readonly string[]
  readonly sessions: number
}

/**
 * Projects that sessions recorded and whose folder is gone, the largest group first. Only recorded folders count, never a name
 * that was decoded, and a folder counts as gone only when the one above it is there: an unmounted disk is none (R28).
 */
export function findDeadProjects(store: Store, probe: PathProbe): DeadProjects[] {
  const counts = new Map<string, number>()
  for (const ref of store.inventory().sessions.filter(isConversation)) {
    for (const folder of store.head?.(ref).folders ?? []) counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  const groups = new Map<string, { projects: string[]; sessions: number }>()
  for (const [project, sessions] of counts) {
    if (!posix.isAbsolute(project) || probe.presence(project) !== 'gone') continue
    const group = groups.get(patternOf(project)) ?? { projects: [], sessions: 0 }
    group.projects.push(project)
    group.sessions += sessions
    groups.set(patternOf(project), group)
  }
  return [...groups].map(([pattern, group]) => ({ pattern, ...group })).sort((a, b) => b.sessions - a.sessions)
}

function patternOf(project: string): string {
  const name = posix.basename(project)
  const cut = Math.max(name.lastIndexOf('-'), name.lastIndexOf('.'), name.lastIndexOf('_'))
  return posix.join(posix.dirname(project), cut <= 0 ? name : `${name.slice(0, cut + 1)}*`)
}
