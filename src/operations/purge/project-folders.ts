import type { Store } from '../../formats/format.js'
import { parentOf } from '../../fs/safe-path.js'
import { finding, type Finding } from '../../model/finding.js'
import type { ErrorItem } from '../../model/report.js'
import type { Member, SessionRef } from '../../model/session.js'
import type { RemoveAction } from '../../plan/action.js'
import type { FreedBytes } from '../../plan/planned-item.js'
import { asErrors, freedBy, itemsOf, lookAt } from '../session-size.js'

interface Folder {
  /** Sessions with a part in it that go, in the order of the plan. */
  readonly goes: string[]
  stays: number
}

/** The project folders of a store that a purge touches. */
export class ProjectFolders {
  readonly #store: Store
  readonly #memory: boolean
  readonly #folders = new Map<string, Folder>()
  readonly #findings: Finding[] = []
  readonly #errors: ErrorItem[] = []

  /** @param memory whether the memory of a folder goes too */
  constructor(store: Store, memory: boolean) {
    this.#store = store
    this.#memory = memory
  }

  /** Every session of the store, with whether it goes. */
  note(ref: SessionRef, goes: boolean): void {
    for (const member of ref.members) {
      if (member.kind !== 'transcript' && member.kind !== 'companion' && member.kind !== 'agent') continue
      const path = parentOf(member.path)
      const folder = this.#folders.get(path) ?? { goes: [], stays: 0 }
      if (!goes) folder.stays += 1
      else if (!folder.goes.includes(ref.id)) folder.goes.push(ref.id)
      this.#folders.set(path, folder)
    }
  }

  /**
   * Files of a project folder that belong to no session go with the last session of it, and only where no session of another
   * project, or one that is kept, has a part in them (R25). The memory needs a flag of its own (R15).
   */
  take(actions: Map<string, RemoveAction>, freed: FreedBytes): { memories: number; findings: readonly Finding[]; errors: readonly ErrorItem[] } {
    let memories = 0
    for (const [path, { goes, stays }] of this.#folders) {
      const last = actions.get(goes.at(-1) ?? '')
      const files = this.#store.projectFiles?.(path)
      if (last === undefined || files === undefined) continue
      if (stays > 0) this.#sayMemoryStays(files.memory, stays)
      else if (this.#add(actions, last, [...files.caches, ...(this.#memory ? files.memory : [])], freed) && this.#memory) memories += files.memory.length
    }
    return { memories, findings: this.#findings, errors: this.#errors }
  }

  #sayMemoryStays(memory: readonly Member[], stays: number): void {
    if (!this.#memory) return
    for (const { path } of memory) {
      const message = `the memory stays: ${String(stays)} sessions in its folder are not part of the purge`
      this.#findings.push(finding('foreign-file', message, { path, severity: 'warn' }))
    }
  }

  #add(actions: Map<string, RemoveAction>, action: RemoveAction, members: readonly Member[], freed: FreedBytes): boolean {
    const looked = lookAt(this.#store, members)
    if ('error' in looked) {
      this.#errors.push(...asErrors(looked.error))
      return false
    }
    const bytes = action.bytes + freedBy(freed, looked.planned)
    actions.set(action.session, { ...action, bytes, items: [...action.items, ...itemsOf(looked.planned)] })
    return true
  }
}
