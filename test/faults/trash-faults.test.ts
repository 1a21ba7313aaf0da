import { execFileSync } from 'node:child_process'
import { chmodSync, closeSync, existsSync, lstatSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statfsSync, unlinkSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'
import { expect, onTestFinished, test } from 'vitest'
import { atomicWrite } from '../../src/fs/atomic-write.js'
import { acquireLock, readLock } from '../../src/fs/lock.js'
import { applyPlan } from '../../src/plan/apply.js'
import { recoverRuns } from '../../src/plan/recover.js'
import { restoreFromTrash } from '../../src/plan/restore.js'
import { reserveBytes, Sidecar } from '../../src/plan/sidecar.js'
import type { StorePlace } from '../../src/plan/sidecar.js'
import { emptyTrash, listTrash } from '../../src/plan/trash.js'
import { FenceError, NoSpaceError } from '../../src/model/errors.js'
import { temporaryFolder } from '../helpers/temp.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'
import { day, exists, expireAll, now, run1, run2, sampleStore, sessionId, slugOf, storeTree } from '../plan/sample.js'

const transcript = (n: number): string => `projects/${slugOf(n)}/${sessionId(n)}.jsonl`

function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code })
}

/** A rename that fails with a code whenever a path holds the text, the first `times` times. */
function failingRename(text: string, code: string, times = Infinity): (from: string, to: string) => void {
  let left = times
  return (from, to) => {
    if (from.includes(text) && !from.includes('.rewind-admin') && left-- > 0) throw systemError(code)
    renameSync(from, to)
  }
}

/** Mounts a file system of 1 MB, or skips the test with one line that says why. */
async function smallDisk(context: TestContext, options = 'size=1m'): Promise<string> {
  const folder = await temporaryFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `${options},mode=700`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    const reason = 'this user may not mount a tmpfs'
    process.stderr.write(`skipped: ${context.task.name}: ${reason}\n`)
    context.skip(reason)
  }
  onTestFinished(() => { execFileSync('umount', ['-l', folder]) })
  return folder
}

/** Copies a sample store onto a small disk, exactly. */
async function storeOn(disk: string, count: number): Promise<StorePlace> {
  const source = await sampleStore(count)
  const root = join(disk, '.claude')
  execFileSync('cp', ['-a', source.root, root])
  return { root, sidecar: join(root, '.rewind-admin') }
}

function fillUp(disk: string): void {
  const fd = openSync(join(disk, 'filler'), 'a')
  try {
    for (const size of [65_536, 4096, 1]) for (;;) if (writeSync(fd, Buffer.alloc(size, 'x')) < size) break
  } catch {
    // Full.
  } finally {
    closeSync(fd)
  }
  expect(statfsSync(disk).bavail).toBe(0)
}

test('R106: with 0 bytes free the first run ever moves sessions to the trash, they can be listed and come back', async (context) => {
  const disk = await smallDisk(context)
  const store = await storeOn(disk, 12)
  fillUp(disk)
  const before = storeTree(store.root)
  const result = await applyPlan(expireAll(store, 12), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], kept: [] })
  expect(result.done).toHaveLength(12)
  expect(result.notes.length).toBeGreaterThan(0)
  expect(exists(join(store.root, transcript(0)))).toBe(false)
  expect(listTrash(store).map((entry) => [entry.session, entry.trashedAt, entry.receiptLost])).toEqual(
    Array.from({ length: 12 }, (_, n) => [sessionId(n), now, true]),
  )
  expect(await restoreFromTrash(store, run1)).toMatchObject({ errors: [] })
  expect(storeTree(store.root)).toEqual(before)
})

test('R106: with 0 bytes free the trash can be emptied, and --no-trash frees space', async (context) => {
  const disk = await smallDisk(context)
  const store = await storeOn(disk, 12)
  fillUp(disk)
  await applyPlan(expireAll(store, 6), { now, runId: run1 })
  expect((await emptyTrash(store, { olderThan: 7 * day, now: now + 8 * day })).removed).toHaveLength(6)
  expect(statfsSync(disk).bavail).toBeGreaterThan(0)
  fillUp(disk)
  expect(await applyPlan(expireAll(store, 12), { now, runId: run2, noTrash: true })).toMatchObject({ exitCode: 0, errors: [] })
  expect(statfsSync(disk).bavail).toBeGreaterThan(0)
  expect(Object.values(storeTree(store.root)).filter((node) => node.type === 'file')).toEqual([])
})

test('R106: on a full disk the reserve of an earlier run gives journal and receipts their room', async (context) => {
  const disk = await smallDisk(context)
  const store = await storeOn(disk, 6)
  await applyPlan(expireAll(store, 1), { now, runId: run1 })
  expect(lstatSync(join(store.sidecar, 'reserve')).size).toBe(reserveBytes)
  fillUp(disk)
  const result = await applyPlan(expireAll(store, 6), { now, runId: run2 })
  expect(result).toMatchObject({ exitCode: 0, errors: [], notes: [] })
  expect(listTrash(store).filter((entry) => entry.receiptLost)).toEqual([])
})

test('R106, promise 6: a run that died on a full disk, without journal or receipts, is put back whole', async (context) => {
  const disk = await smallDisk(context)
  const store = await storeOn(disk, 2)
  fillUp(disk)
  const before = storeTree(store.root)
  await applyPlan(expireAll(store, 2), { now, runId: run1 })
  const slot = join(store.sidecar, 'trash', run1, sessionId(1))
  renameSync(slot, `${slot}.part`)
  expect(await recoverRuns(store, { now })).toEqual([{ runId: run1, completed: [], rolledBack: [sessionId(1)], errors: [] }])
  await restoreFromTrash(store, run1)
  expect(storeTree(store.root)).toEqual(before)
})

test('R106: with no room for a name in our folder nothing is moved, exit code 28', async (context) => {
  const disk = await smallDisk(context, 'size=1m,nr_inodes=60')
  const store = await storeOn(disk, 4)
  for (let n = 0; ; n += 1) {
    try {
      writeFileSync(join(disk, `filler-${String(n)}`), '')
    } catch {
      break
    }
  }
  const before = storeTree(store.root)
  const run = applyPlan(expireAll(store, 4), { now, runId: run1 })
  await expect(run).rejects.toThrow(NoSpaceError)
  await expect(run).rejects.toMatchObject({ exitCode: 28 })
  expect(storeTree(store.root)).toEqual(before)
})

test('R106: when room runs out for the folders of the trash the rest stays in place whole, exit code 28', async (context) => {
  const disk = await smallDisk(context, 'size=1m,nr_inodes=100')
  const store = await storeOn(disk, 6)
  const inodes = 100 - execFileSync('find', [disk, '-printf', '.']).length
  for (let n = 0; n < inodes - 12; n += 1) writeFileSync(join(disk, `filler-${String(n)}`), '')
  const before = storeTree(store.root)
  const result = await applyPlan(expireAll(store, 6), { now, runId: run1 })
  expect(result.exitCode).toBe(28)
  expect(result.done.length).toBeGreaterThan(0)
  expect(result.errors.length).toBeGreaterThan(0)
  expect(result.done.length + result.errors.length).toBe(6)
  const left = storeTree(store.root)
  for (let n = result.done.length; n < 6; n += 1) {
    const own = Object.keys(before).filter((path) => path.includes(sessionId(n)))
    for (const path of own) expect(left[path], path).toBeDefined()
  }
  await restoreFromTrash(store, run1)
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
})

test('R106: a lock can be taken on a full disk', async (context) => {
  const disk = await smallDisk(context)
  fillUp(disk)
  const path = join(disk, 'lock')
  const processes = { processExists: () => true, processStart: () => '7' }
  const options = { pid: 100, host: 'here', command: 'expire', now, token: 'aa', waitMs: 0, processes }
  const lock = await acquireLock(path, options)
  expect(readLock(path)).toEqual({ pid: 100, startTime: '7', host: 'here', token: 'aa' })
  await expect(acquireLock(path, { ...options, token: 'bb' })).rejects.toMatchObject({ exitCode: 11 })
  lock.release()
  expect(readdirSync(disk)).toEqual(['filler'])
})

test('R106: an atomic write on a full disk fails with code 28 and leaves the old file', async (context) => {
  const disk = await smallDisk(context)
  writeFileSync(join(disk, 'a'), 'old')
  fillUp(disk)
  expect(() => { atomicWrite(join(disk, 'a'), Buffer.alloc(100_000, 'y'), { token: 'a1' }) }).toThrow(NoSpaceError)
  expect(readdirSync(disk).sort()).toEqual(['a', 'filler'])
  expect(lstatSync(join(disk, 'a')).size).toBe(3)
})

test('R107: on Windows a file that is held twice is tried again and moves', async () => {
  const store = await sampleStore(1)
  const waits: number[] = []
  const sleep = (ms: number): Promise<void> => {
    waits.push(ms)
    return Promise.resolve()
  }
  const rename = failingRename(sessionId(0), 'EBUSY', 2)
  const result = await applyPlan(expireAll(store, 1), { now, runId: run1, platform: 'win32', sleep, faults: { rename } })
  expect(result).toMatchObject({ exitCode: 0, errors: [] })
  expect(waits).toEqual([20, 50])
})

test.each(['EBUSY', 'EPERM', 'EACCES', 'ENOTEMPTY'])('R107: a transcript that is held for ever (%s) fails its session, which stays whole; the others are done', async (code) => {
  const store = await sampleStore(3)
  const before = storeTree(store.root)
  const sleep = (): Promise<void> => Promise.resolve()
  const faults = { rename: failingRename(transcript(1), code) }
  const result = await applyPlan(expireAll(store, 3), { now, runId: run1, platform: 'win32', sleep, faults })
  expect(result).toMatchObject({ exitCode: 3, errors: [{ code, path: transcript(1) }] })
  expect(result.done.map((item) => item.session)).toEqual([sessionId(0), sessionId(2)])
  const left = storeTree(store.root)
  const own = Object.keys(before).filter((path) => path.includes(sessionId(1)))
  for (const path of own) expect(left[path], path).toEqual({ ...before[path], inode: left[path]?.inode })
  expect(listTrash(store).map((entry) => entry.session)).toEqual([sessionId(0), sessionId(2)])
})

test('R107: elsewhere a busy file fails at once', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  let tries = 0
  const rename = (): void => {
    tries += 1
    throw systemError('EBUSY')
  }
  expect(await applyPlan(expireAll(store, 1), { now, runId: run1, platform: 'linux', faults: { rename } })).toMatchObject({ exitCode: 3 })
  expect(tries).toBe(1)
  expect(storeTree(store.root)).toEqual(before)
})

test('R24: a folder without write permission fails its sessions, the others are done; after chmod a second run completes', async (context) => {
  needs(context, 'unprivileged')
  const store = await sampleStore(5)
  chmodSync(join(store.root, 'projects', slugOf(2)), 0o555)
  giveAway(join(store.root, '..'))
  const first = await asNobody(() => applyPlan(expireAll(store, 5), { now, runId: run1 }))
  expect(first).toMatchObject({ exitCode: 3, errors: [{ code: 'EACCES' }] })
  expect(first.done.map((item) => item.session)).toEqual([0, 1, 3, 4].map(sessionId))
  expect(existsSync(join(store.root, transcript(2)))).toBe(true)
  expect(readdirSync(join(store.root, 'file-history', sessionId(2)))).toHaveLength(3)
  chmodSync(join(store.root, 'projects', slugOf(2)), 0o755)
  const second = await asNobody(() => applyPlan(expireAll(store, 5), { now, runId: run2 }))
  expect(second).toMatchObject({ exitCode: 0, errors: [] })
  expect(second.done.map((item) => item.session)).toEqual([sessionId(2)])
})

test('a store of another owner: nothing is moved, exit code 3, and the reason is named', async (context) => {
  needs(context, 'unprivileged')
  const store = await sampleStore(1)
  chmodSync(join(store.root, '..'), 0o755)
  for (const path of ['.', 'projects', 'file-history', 'todos', `projects/${slugOf(0)}`, `file-history/${sessionId(0)}`, `projects/${slugOf(0)}/${sessionId(0)}`, `projects/${slugOf(0)}/${sessionId(0)}/subagents`]) {
    chmodSync(join(store.root, path), 0o755)
  }
  const before = storeTree(store.root)
  const run = asNobody(() => applyPlan(expireAll(store, 1), { now, runId: run1 }))
  await expect(run).rejects.toMatchObject({ exitCode: 3, code: 'FENCE' })
  await expect(run).rejects.toThrow(/cannot be written \(EACCES\); nothing was moved/)
  expect(storeTree(store.root)).toEqual(before)
})

test('a read-only file system: nothing is moved, exit code 3', async (context) => {
  const disk = await smallDisk(context)
  const store = await storeOn(disk, 1)
  const plan = expireAll(store, 1)
  execFileSync('mount', ['-o', 'remount,ro', disk])
  await expect(applyPlan(plan, { now, runId: run1 })).rejects.toMatchObject({ exitCode: 3, message: expect.stringContaining('EROFS') as string })
  expect(exists(join(store.root, transcript(0)))).toBe(true)
})

test('a file system that becomes read-only amid the run: the session in work is reported, nothing of it is lost', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const faults = { rename: failingRename(transcript(0), 'EROFS') }
  expect(await applyPlan(expireAll(store, 1), { now, runId: run1, faults })).toMatchObject({ exitCode: 3, errors: [{ code: 'EROFS' }] })
  expect(storeTree(store.root)).toEqual(before)
})

test('an immutable transcript stays with its whole session, exit code 3', async (context) => {
  const store = await sampleStore(2)
  const path = join(store.root, transcript(1))
  try {
    execFileSync('chattr', ['+i', path], { stdio: 'ignore' })
  } catch {
    context.skip('this file system has no immutable files')
  }
  onTestFinished(() => { execFileSync('chattr', ['-i', path]) })
  const before = Object.keys(storeTree(store.root)).filter((each) => each.includes(sessionId(1)))
  const result = await applyPlan(expireAll(store, 2), { now, runId: run1 })
  expect(result).toMatchObject({ exitCode: 3, errors: [{ code: 'EPERM', path: transcript(1) }] })
  expect(result.done.map((item) => item.session)).toEqual([sessionId(0)])
  expect(Object.keys(storeTree(store.root)).filter((each) => each.includes(sessionId(1)))).toEqual(before)
})

test('a sidecar on another file system is refused, unless --no-trash removes where things stand', async (context) => {
  const disk = await smallDisk(context)
  const sample = await sampleStore(3)
  const store = { root: sample.root, sidecar: join(disk, 'sidecar') }
  const before = storeTree(store.root)
  const refused = applyPlan(expireAll(store, 3), { now, runId: run1 })
  await expect(refused).rejects.toThrow(FenceError)
  await expect(refused).rejects.toMatchObject({ hint: expect.stringContaining('--no-trash') as string })
  expect(storeTree(store.root)).toEqual(before)
  expect(await applyPlan(expireAll(store, 3), { now, runId: run2, noTrash: true })).toMatchObject({ exitCode: 0, errors: [] })
  expect(Object.values(storeTree(store.root)).filter((node) => node.type === 'file')).toEqual([])
})

test('a mount inside the store: what lies on it fails with its reason and stays, whole', async () => {
  const store = await sampleStore(2)
  const before = storeTree(store.root)
  const faults = { rename: failingRename(`file-history/${sessionId(0)}`, 'EXDEV') }
  expect(await applyPlan(expireAll(store, 1), { now, runId: run1, faults })).toMatchObject({
    exitCode: 3,
    errors: [{ code: 'FENCE', message: expect.stringContaining('--no-trash') as string }],
  })
  expect(storeTree(store.root)).toEqual(before)
})

test('--no-trash: what cannot be removed is said, lies out of the store, and the next run goes on with it', async () => {
  const store = await sampleStore(1)
  let fail = true
  const unlink = (path: string | Buffer): void => {
    if (fail && String(path).endsWith('@v2')) throw systemError('EIO')
    unlinkSync(path)
  }
  const result = await applyPlan(expireAll(store, 1), { now, runId: run1, noTrash: true, faults: { unlink } })
  expect(result).toMatchObject({ exitCode: 3, errors: [{ code: 'EIO', message: expect.stringContaining('out of the store') as string }] })
  expect(listTrash(store)).toEqual([])
  fail = false
  expect(await recoverRuns(store, { now })).toMatchObject([{ completed: [sessionId(0)], errors: [] }])
  expect(readdirSync(join(store.sidecar, 'trash'))).toEqual([])
})

test('something that is not our folder at the place of the sidecar or the trash is left alone', async () => {
  const store = await sampleStore(1)
  const before = storeTree(store.root)
  writeFileSync(store.sidecar, 'mine')
  await expect(applyPlan(expireAll(store, 1), { now, runId: run1 })).rejects.toThrow(FenceError)
  rmSync(store.sidecar)
  const elsewhere = await temporaryFolder()
  execFileSync('ln', ['-s', elsewhere, store.sidecar])
  await expect(applyPlan(expireAll(store, 1), { now, runId: run1 })).rejects.toThrow(FenceError)
  expect(readdirSync(elsewhere)).toEqual([])
  rmSync(store.sidecar)
  expect(Object.keys(storeTree(store.root))).toEqual(Object.keys(before))
})

test('promise 10: a sidecar that was opened to others is closed again', async () => {
  const store = await sampleStore(1)
  mkdirSync(store.sidecar)
  chmodSync(store.sidecar, 0o755)
  new Sidecar(store).prepare()
  expect(lstatSync(store.sidecar).mode & 0o777).toBe(0o700)
})
