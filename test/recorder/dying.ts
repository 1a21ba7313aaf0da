import { join, resolve } from 'node:path'
import { runChild, type ChildEnd } from '../plan/child.js'
import type { Recording } from '../helpers/recording.js'

const dist = resolve(import.meta.dirname, '../../dist/src')

/** Records in a process of its own that dies by SIGKILL just before its n-th act on the disk, or in the middle of a write. */
const victim = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  import { pathToFileURL } from 'node:url'
  const [dist, request] = process.argv.slice(-2)
  const { root, session, cwd, now, act, argument, at } = JSON.parse(request)
  const load = (path) => import(pathToFileURL(dist + '/' + path).href)
  const { openRecorder } = await load('recorder/recorder.js')
  const { thisMachine } = await load('fs/machine.js')
  let count = 0
  const die = () => { process.kill(process.pid, 'SIGKILL'); for (;;) {} }
  for (const name of ['linkSync', 'renameSync', 'unlinkSync', 'rmSync', 'mkdirSync', 'fsyncSync', 'fchmodSync', 'symlinkSync', 'writeSync', 'openSync', 'writeFileSync']) {
    const real = fs[name]
    fs[name] = (...args) => {
      const writes = name !== 'openSync' || (typeof args[1] === 'number' ? (args[1] & fs.constants.O_CREAT) !== 0 : args[1] !== 'r')
      if (!writes) return real(...args)
      count += 1
      if (count !== at) return real(...args)
      if (name === 'writeSync') real(args[0], args[1], 0, Math.floor(args[1].length / 2))
      die()
    }
  }
  syncBuiltinESMExports()
  const uuid = () => crypto.randomUUID()
  const recorder = openRecorder({ root, sessionId: session, cwd, now: () => now, uuid, waitMs: 10_000, process: { pid: process.pid, host: 'test', table: thisMachine() } })
  await recorder[act](...(argument === undefined ? [] : [argument]))
  console.log(count)
`

export interface DyingAct {
  readonly act: 'sessionStart' | 'beginTurn' | 'beforeEdit' | 'endSession'
  readonly argument?: string
  /** Which act on the disk is the last that is not done any more, from 1; past the end it survives. */
  readonly at: number
}

/** Number of acts on the disk when it survived, else `undefined`. */
export async function recordAndDie(recording: Recording, { act, argument, at }: DyingAct): Promise<number | undefined> {
  const request = { root: recording.root, session: recording.session, cwd: recording.project, now: recording.now, act, argument, at }
  const end: ChildEnd = await runChild(dist, victim, [dist, JSON.stringify(request)])
  if (end.signal === 'SIGKILL') return undefined
  if (end.code !== 0) throw new Error(`the recorder failed: ${end.stderr}`)
  return Number(end.stdout)
}

/** Where the backups of a recording lie. */
export function backupAt(recording: Recording, name: string): string {
  return join(recording.root, recording.session, 'backups', name)
}
