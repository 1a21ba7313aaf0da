import { mkdirSync, lstatSync, readFileSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { HeldLock, LockOptions, ProcessTable } from '../../src/fs/lock.js'
import { acquireLock, readLock } from '../../src/fs/lock.js'
import { LockedError } from '../../src/model/errors.js'
import { temporaryFolder } from '../helpers/temp.js'

/** Process 100 started at tick 7, process 200 at tick 8; no other exists. */
const processes: ProcessTable = {
  processExists: (pid) => pid === 100 || pid === 200,
  processStart: (pid) => ({ 100: '7', 200: '8' })[pid],
}
const now = Date.parse('2026-11-30T03:17:00.000Z')

function options(over: Partial<LockOptions> = {}): LockOptions {
  return { pid: 100, host: 'here', command: 'expire', now, token: 'aa', waitMs: 0, processes, sleep: () => Promise.resolve(), ...over }
}

async function lockPath(): Promise<string> {
  return join(await temporaryFolder(), 'lock')
}

const json = (fields: object): string => JSON.stringify(fields)

test('promise 6: the lock says who holds it, and goes when it is given back', async () => {
  const path = await lockPath()
  const lock = await acquireLock(path, options())
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    pid: 100, startTime: '7', host: 'here', command: 'expire', acquiredAt: '2026-11-30T03:17:00.000Z', token: 'aa',
  })
  expect(lstatSync(path).mode & 0o777).toBe(0o600)
  lock.release()
  expect(readdirSync(join(path, '..'))).toEqual([])
})

test('promise 6: a second run is refused while the first lives, with exit code 11 and the holder named', async () => {
  const path = await lockPath()
  await acquireLock(path, options())
  const second = acquireLock(path, options({ pid: 200, token: 'bb' }))
  await expect(second).rejects.toMatchObject({ code: 'LOCKED', exitCode: 11 })
  await expect(second).rejects.toThrow(/process 100 on here \(expire, since 2026-11-30T03:17:00.000Z\)/)
  expect(readLock(path)?.token).toBe('aa')
})

test('promise 6: a second run that waits gets the lock when the first gives it back', async () => {
  const path = await lockPath()
  const first = await acquireLock(path, options())
  let rounds = 0
  const sleep = (): Promise<void> => {
    rounds += 1
    if (rounds === 3) first.release()
    return Promise.resolve()
  }
  await acquireLock(path, options({ pid: 200, token: 'bb', waitMs: 1000, sleep }))
  expect([rounds, readLock(path)?.pid]).toEqual([3, 200])
})

test.each([
  ['a process that is gone', { pid: 999_999, host: 'here', token: 'cc' }],
  ['our own pid with another start time', { pid: 100, startTime: '6', host: 'here', token: 'cc' }],
])('R103: a lock of %s is taken over', async (_, holder) => {
  const path = await lockPath()
  writeFileSync(path, json(holder))
  await acquireLock(path, options())
  expect(readLock(path)?.token).toBe('aa')
  expect(readdirSync(join(path, '..'))).toEqual(['lock'])
})

test('R103: a lock of another host is waited for, then exit code 11, and it is not removed', async () => {
  const path = await lockPath()
  writeFileSync(path, json({ pid: 999_999, host: 'there', token: 'cc' }))
  let slept = 0
  const sleep = (ms: number): Promise<void> => {
    slept += ms
    return Promise.resolve()
  }
  await expect(acquireLock(path, options({ waitMs: 2000, sleep }))).rejects.toMatchObject({ exitCode: 11 })
  expect(slept).toBe(2000)
  expect(readLock(path)?.host).toBe('there')
})

test('R103: a folder at the place of the lock is an error with a message, and stays', async () => {
  const path = await lockPath()
  mkdirSync(path)
  await expect(acquireLock(path, options())).rejects.toThrow(LockedError)
  await expect(acquireLock(path, options())).rejects.toThrow(/is a folder, not a lock/)
  expect(lstatSync(path).isDirectory()).toBe(true)
})

test('R103: a lock that was lost to another run is not removed on release', async () => {
  const path = await lockPath()
  const lock = await acquireLock(path, options())
  writeFileSync(path, json({ pid: 200, startTime: '8', host: 'here', token: 'dd' }))
  lock.release()
  expect(readLock(path)?.token).toBe('dd')
})

test('R103: an empty lock of a power cut is taken over, a fresh one is waited for', async () => {
  const path = await lockPath()
  writeFileSync(path, '')
  utimesSync(path, now / 1000, now / 1000)
  await expect(acquireLock(path, options())).rejects.toThrow(LockedError)
  await acquireLock(path, options({ now: now + 120_000 }))
  expect(readLock(path)?.token).toBe('aa')
})

test('R103: many that find the same stale lock at once: never more than one holds it', async () => {
  const path = await lockPath()
  writeFileSync(path, json({ pid: 999_999, host: 'here', token: 'cc' }))
  let holders = 0
  let most = 0
  const contender = async (n: number): Promise<void> => {
    const sleep = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const lock = await acquireLock(path, options({ token: `e${String(n)}`, waitMs: 1e9, sleep }))
    holders += 1
    most = Math.max(most, holders)
    await sleep()
    holders -= 1
    lock.release()
  }
  await Promise.all(Array.from({ length: 20 }, (_, n) => contender(n)))
  expect(most).toBe(1)
  expect(readdirSync(join(path, '..'))).toEqual([])
})

test('R103: one who read a stale lock long ago cannot remove the newer lock of another', async () => {
  const path = await lockPath()
  writeFileSync(path, json({ pid: 999_999, host: 'here', token: 'cc' }))
  // While the slow one asks whether the holder lives, the quick one takes the lock over.
  const inBetween: (() => Promise<HeldLock>)[] = [() => acquireLock(path, options({ pid: 200, token: 'bb' }))]
  let quick: Promise<HeldLock> | undefined
  const slowTable: ProcessTable = {
    ...processes,
    processExists: (pid) => {
      quick ??= inBetween.pop()?.()
      return processes.processExists(pid)
    },
  }
  await expect(acquireLock(path, options({ processes: slowTable }))).rejects.toThrow(LockedError)
  await quick
  expect(readLock(path)?.token).toBe('bb')
})

test('R103: a run that died while it took a stale lock over does not block the next one', async () => {
  const path = await lockPath()
  writeFileSync(path, json({ pid: 999_999, host: 'here', token: 'cc' }))
  writeFileSync(`${path}.cc.taken`, json({ pid: 999_998, host: 'here', token: 'ff' }))
  await acquireLock(path, options())
  expect(readLock(path)?.token).toBe('aa')
  expect(readdirSync(join(path, '..'))).toEqual(['lock'])
})

test('R106: a lock made without space, as a link, is read and honoured like any other', async () => {
  const path = await lockPath()
  symlinkSync(json({ pid: 200, startTime: '8', host: 'here', token: 'bb' }), path)
  expect(readLock(path)).toEqual({ pid: 200, startTime: '8', host: 'here', token: 'bb' })
  await expect(acquireLock(path, options())).rejects.toThrow(LockedError)
})
