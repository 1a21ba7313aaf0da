import { hash, createHash, type Hash } from 'node:crypto'
import { chmodSync, closeSync, constants, copyFileSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AnchoredFolder } from '../../fs/anchored-folder.js'
import { writeWhole } from '../../fs/atomic-write.js'
import { digestStretch, eachBlock, openWithStatus } from '../../fs/content.js'
import type { Written } from '../../fs/flush.js'
import { isAsSeen, nodeOf } from '../../fs/working-tree.js'
import { FenceError } from '../../model/errors.js'
import type { FileNode, PlannedPath, TargetPlace } from '../../model/restore-plan.js'
import { pointVersion, type PointEntry, type RedoPoint } from './redo-point.js'

/** Files from this size on are copied as files of their own, so that a file system that can shares their blocks. */
const largeFile = 1024 * 1024
const packName = 'pack'

/** Saves the state of tracked files in a folder of ours: large ones as copies, small ones one behind the other in one file. */
export class PointWriter {
  readonly #folder: AnchoredFolder
  readonly #entries: PointEntry[] = []
  readonly #blobs: string[] = []
  #pack: number | undefined
  #end = 0

  /** @param path of an empty private folder */
  constructor(path: string) {
    this.#folder = AnchoredFolder.open(path)
  }

  /**
   * Saves one path as it is now.
   * @throws FenceError when it is no longer what the plan saw
   * @throws the system error when it cannot be read
   */
  save(item: PlannedPath, folder: AnchoredFolder | undefined): void {
    const { path, node, place, decision } = item
    if (decision.action === 'skip' || decision.action === 'unknown') {
      this.#entries.push({ state: 'skipped', path, reason: decision.reason })
    } else if (place === undefined || (node.kind !== 'file' && node.kind !== 'absent')) {
      this.#entries.push({ state: 'skipped', path, reason: 'where it lies is not known' })
    } else if (node.kind === 'absent' || folder === undefined) {
      this.#entries.push({ state: 'absent', path, folder: place.folder, name: place.name })
    } else {
      this.#saveFile(path, node, place, folder)
    }
  }

  /** Writes `point.json`; what was written still has to be flushed. */
  finish(about: Pick<RedoPoint, 'session' | 'checkpoint' | 'createdAt' | 'token' | 'folders'>): Written[] {
    if (this.#pack !== undefined) closeSync(this.#pack)
    this.#pack = undefined
    const point: RedoPoint = { schemaVersion: pointVersion, ...about, entries: this.#entries }
    writeFileSync(this.#folder.at('point.json'), `${JSON.stringify(point)}\n`, { mode: 0o600, flag: 'wx' })
    const { path: folder, device } = this.#folder
    const files = ['point.json', ...this.#blobs].map((name) => ({ path: join(folder, name), folder, device, isFolder: false }))
    return [...files, { path: folder, folder, device, isFolder: true }]
  }

  close(): void {
    if (this.#pack !== undefined) closeSync(this.#pack)
    this.#pack = undefined
    this.#folder.close()
  }

  #saveFile(path: string, node: FileNode, { folder: real, name }: TargetPlace, folder: AnchoredFolder): void {
    const { fd: source, status } = openWithStatus(folder, name)
    try {
      if (!isAsSeen(node, nodeOf(status))) throw changed(path)
      const saved = node.size < largeFile ? this.#append(source, node.size) : this.#copy(source, folder, name, node.size)
      if (saved.size !== node.size) throw changed(path)
      this.#entries.push({ state: 'file', path, folder: real, name, mode: node.mode, ...saved })
    } finally {
      closeSync(source)
    }
  }

  #append(source: number, size: number): Saved {
    if (this.#pack === undefined) {
      this.#pack = openSync(this.#folder.at(packName), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)
      this.#blobs.push(packName)
    }
    const pack = this.#pack
    let digest: Hash | undefined
    let only: string | undefined
    const copied = eachBlock(source, { offset: 0, size }, (block) => {
      writeWhole(pack, block)
      if (block.length === size) only = hash('sha256', block, 'hex')
      else digest = (digest ?? createHash('sha256')).update(block)
    })
    const offset = this.#end
    this.#end += copied
    return { blob: packName, offset, size: copied, sha256: only ?? (digest ?? createHash('sha256')).digest('hex') }
  }

  #copy(source: number, folder: AnchoredFolder, name: string, size: number): Saved {
    const blob = `blob-${String(this.#blobs.length)}`
    const target = this.#folder.at(blob)
    this.#blobs.push(blob)
    // The open file itself where the system can name it: a path could lead elsewhere by now.
    const from = folder.at(name) === join(folder.path, name) ? folder.at(name) : `/proc/self/fd/${String(source)}`
    copyFileSync(from, target, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE)
    chmodSync(target, 0o600)
    return { blob, offset: 0, size, sha256: digestStretch(this.#folder, blob, { offset: 0, size }) }
  }
}

interface Saved {
  readonly blob: string
  readonly offset: number
  readonly size: number
  readonly sha256: string
}

function changed(path: string): FenceError {
  return new FenceError(`${path} changed since the plan was made; it was left alone`, { hint: 'run again' })
}
