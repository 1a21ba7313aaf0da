import { lstatSync } from 'node:fs'
import type { Store } from '../../formats/format.js'
import { digestFile } from '../../fs/probe.js'
import { finding, type Finding } from '../../model/finding.js'
import { modeFrom, type BrokenBackup, type Rebuild, type RepairProof } from '../../model/repair-plan.js'
import { trackedTarget } from '../../model/tracked-path.js'
import { sealOf, type ForkedCopies, type ForkedCopy } from './forked-copies.js'
import { findGitObjects } from './git-objects.js'
import type { RepairContext, RepairOptions } from './options.js'
import type { SealStore } from '../seals.js'
import type { Survey } from './survey.js'
import { TextProofs, witnessesOf } from './text-proof.js'

/** What can be done about the broken backups of one session. */
export interface BackupPlan {
  readonly rebuilds: readonly Rebuild[]
  /** What stays broken, with the reason. */
  readonly findings: readonly Finding[]
}

/** What proves a backup, as far as it is known before its mode and time. */
interface Found {
  readonly proof: RepairProof
  readonly bytes: number
  /** The forked copy that it is taken from. */
  readonly copy?: ForkedCopy
}

interface Seal {
  readonly sha256: string
  readonly size: number
}

/** Looks for proof of every broken backup of a session: forked copies first, then texts, working files and git objects. */
export class BackupPlanner {
  readonly #store: Store
  readonly #seals: SealStore
  readonly #copies: ForkedCopies
  readonly #options: RepairOptions
  readonly #context: RepairContext

  constructor(store: Store, seals: SealStore, copies: ForkedCopies, options: RepairOptions, context: RepairContext) {
    this.#store = store
    this.#seals = seals
    this.#copies = copies
    this.#options = options
    this.#context = context
  }

  async plan(survey: Survey, broken: readonly BrokenBackup[]): Promise<BackupPlan> {
    const names = new Set(broken.map(({ name }) => name))
    const texts = new TextProofs(this.#store, survey, this.#options.force === true)
    const rebuilds: Rebuild[] = []
    const waiting: { broken: BrokenBackup; seal: Seal }[] = []
    const refused: { broken: BrokenBackup; why: string }[] = []
    for (const each of broken) {
      const seal = this.#sealFor(survey, each.name)
      if (seal === 'disagree') refused.push({ broken: each, why: 'the seals of forked sessions disagree' })
      else if (seal === undefined) {
        const text = texts.unsealed(each, witnessesOf(this.#store, survey, each.name, names))
        if ('refused' in text) refused.push({ broken: each, why: `there is no seal, and ${text.refused}` })
        else rebuilds.push(this.#rebuild(survey, names, each, text))
      } else {
        const found = this.#bySeal(survey, texts, each, seal)
        if (found === undefined) waiting.push({ broken: each, seal })
        else rebuilds.push(this.#rebuild(survey, names, each, found))
      }
    }
    const objects = await this.#gitObjects(survey, waiting)
    for (const { broken: each, seal } of waiting) {
      const object = objects.get(seal.sha256)
      if (object === undefined || survey.reading.project === undefined) {
        refused.push({ broken: each, why: 'nothing was found that agrees with its seal' })
        continue
      }
      const proof: RepairProof = { kind: 'git', folder: survey.reading.project, object, sha256: seal.sha256 }
      rebuilds.push(this.#rebuild(survey, names, each, { proof, bytes: seal.size }))
    }
    return { rebuilds, findings: refused.map(({ broken: each, why }) => this.#stays(survey, each, why)) }
  }

  /** The seal of the backup itself; else the one that forked sessions have of the same backup. */
  #sealFor(survey: Survey, name: string): Seal | undefined | 'disagree' {
    const own = sealOf(this.#seals, survey.ref.id, name)
    if (own !== undefined) return own
    const time = survey.reading.history.references.get(name)?.time
    const seals = this.#copies.sameBackup(survey.ref.id, name, time).flatMap(({ seal }) => (seal === undefined ? [] : [seal]))
    const [first] = seals
    return seals.some(({ sha256 }) => sha256 !== first?.sha256) ? 'disagree' : first
  }

  #bySeal(survey: Survey, texts: TextProofs, { session, name }: BrokenBackup, seal: Seal): Found | undefined {
    const { sha256 } = seal
    const copy = this.#copies.of(session, name).find(({ digest }) => digest === sha256)
    if (copy !== undefined) return { proof: { kind: 'fork', session: copy.session, sha256 }, bytes: copy.size, copy }
    const text = texts.sealed(name, sha256)
    if (text !== undefined && 'proof' in text) return text
    const path = survey.reading.history.references.get(name)?.path
    const target = path === undefined ? undefined : trackedTarget(path, survey.reading.project)
    if (target === undefined || !('path' in target) || digestOf(target.path, seal.size) !== sha256) return undefined
    return { proof: { kind: 'file', path: target.path, sha256 }, bytes: seal.size }
  }

  async #gitObjects(survey: Survey, waiting: readonly { seal: Seal }[]): Promise<Map<string, string>> {
    const { execFile } = this.#context
    const folder = survey.reading.project
    if (execFile === undefined || folder === undefined || waiting.length === 0) return new Map()
    if (lstatSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return new Map()
    return findGitObjects(execFile, folder, waiting.map(({ seal }) => seal))
  }

  #rebuild(survey: Survey, broken: ReadonlySet<string>, each: BrokenBackup, { proof, bytes, copy }: Found): Rebuild {
    const neighbours = (survey.folder?.entries ?? []).filter(({ name, node }) => node === 'file' && !broken.has(name))
    const recorded = Date.parse(survey.reading.history.references.get(each.name)?.time ?? '')
    const time = Number.isNaN(recorded) || recorded > this.#context.now ? this.#context.now : recorded
    return { ...each, proof, bytes, mode: copy?.mode ?? modeFrom(each.name, neighbours), mtimeMs: copy?.mtimeMs ?? time }
  }

  #stays(survey: Survey, { session, name, damage }: BrokenBackup, why: string): Finding {
    const path = `${this.#store.backupFolder(session)}/${name}`
    const found = survey.findings.find(({ place }) => place?.path === path)
    const id = found?.id ?? (damage === 'fork-differs' ? 'fork-differs' : 'missing-backup')
    const what = found?.message ?? (damage === 'fork-differs' ? 'differs from the same backup in another session' : 'the backup is not there')
    const remedy = 'none: without proof it stays as it is'
    return finding(id, `${what}; it cannot be rebuilt: ${why}`, { session, path, remedy })
  }
}

/** Digest of a plain file of that size; `undefined` for anything else. */
function digestOf(path: string, size: number): string | undefined {
  try {
    const status = lstatSync(path)
    return status.isFile() && status.size === size ? digestFile(path).digest : undefined
  } catch {
    return undefined
  }
}
