import { dirname } from 'node:path'
import { statusOf } from '../fs/identity.js'
import { foldersAbove, insideRoot } from '../fs/safe-path.js'
import { FenceError } from '../model/errors.js'
import type { ErrorItem } from '../model/report.js'
import type { Bench } from './move.js'
import { chmodFolder, putBack } from './move.js'
import { errorItem, occupied } from './outcome.js'
import type { FolderRecord } from './receipt.js'
import type { Slot } from './slot.js'

/**
 * Makes the folders again that were removed with the last thing in them, the outermost first. Their modes are given at the end,
 * by the function that is returned: things must be put into them first.
 * @throws FenceError when something else stands where a folder was; system errors
 */
export function makeFolders(bench: Bench, records: readonly FolderRecord[]): () => void {
  const finish: (() => void)[] = []
  for (const record of records) {
    const path = insideRoot(bench.root, record.path)
    if (path === undefined) throw new FenceError(`the folder above ${record.path} is gone; what belongs there stays in the trash`)
    const mtimeNs = BigInt(record.mtimeNs)
    const there = statusOf(path)
    if (there !== undefined) {
      if (!there.isDirectory()) throw new FenceError(`${record.path} is no longer a folder; what belongs there stays in the trash`)
      bench.times.before(path, mtimeNs)
      continue
    }
    bench.times.before(dirname(path))
    bench.acts.direct.mkdir(path, 0o700)
    bench.times.after(dirname(path))
    bench.times.adopt(path, mtimeNs)
    finish.push(() => {
      chmodFolder(path, record.mode)
      if (process.geteuid?.() === 0) bench.acts.direct.chown(path, record.uid, record.gid)
    })
  }
  return () => {
    for (const step of finish) step()
  }
}

/**
 * Puts back what lies in a folder of the trash whose receipt is lost: the name of each thing in it says the path it had. A folder
 * above it that is gone is made again, for its owner alone.
 * @returns what could not be put back; it stays in the trash
 */
export async function putFilesBack(bench: Bench, slot: Slot): Promise<ErrorItem[]> {
  const left: ErrorItem[] = []
  for (const { place, path } of slot.contents()) {
    try {
      for (const folder of foldersAbove(path)) makeFolder(bench, folder)
      for (const taken of await putBack(bench, place, path, true)) left.push(occupied(taken))
    } catch (error) {
      left.push(errorItem(error, path))
    }
  }
  return left
}

function makeFolder(bench: Bench, relative: string): void {
  const path = insideRoot(bench.root, relative)
  if (path === undefined || statusOf(path) !== undefined) return
  bench.times.before(dirname(path))
  bench.acts.direct.mkdir(path, 0o700)
  bench.sidecar.own(path)
  bench.times.after(dirname(path))
}
