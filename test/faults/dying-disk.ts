import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/** What a process that was killed would have gone on to do: from then on nothing more reaches the disk, not even its clean-up. */
class Dead extends Error {
  readonly code = 'EDEAD'
}

const acts = [
  'appendFileSync', 'chmodSync', 'chownSync', 'copyFileSync', 'fchmodSync', 'fchownSync', 'ftruncateSync', 'futimesSync', 'linkSync', 'lutimesSync', 'mkdirSync',
  'renameSync', 'rmSync', 'rmdirSync', 'symlinkSync', 'truncateSync', 'unlinkSync', 'utimesSync', 'writeFileSync', 'writeSync',
] as const

type Act = (...args: unknown[]) => unknown

const missing: Act = () => { throw new Error('this Node has no such act') }

/**
 * Runs something in this process as if the process was killed at its n-th act on the disk: before it, or in the middle where it
 * writes. Deterministic, and as fast as the act itself.
 * @returns the number of acts up to then, and whether it came to that
 */
export async function killedAt(at: number, run: () => Promise<unknown>): Promise<{ readonly acts: number; readonly killed: boolean }> {
  let count = 0
  const state = { dead: false }
  const table = fs as unknown as Record<string, Act>
  const original = new Map<string, Act>([...acts, 'openSync'].map((name) => [name, table[name] ?? missing]))
  const counted = (name: string, act: Act): Act => (...args) => {
    if (name === 'openSync' && !isWriting(args[1])) return act(...args)
    if (state.dead) throw new Dead(`${name} after the end`)
    count += 1
    if (count < at) return act(...args)
    state.dead = true
    const [to, bytes] = args
    if (name === 'writeSync' && bytes instanceof Uint8Array && bytes.length > 1) act(to, bytes.subarray(0, Math.floor(bytes.length / 2)))
    throw new Dead(name)
  }
  for (const [name, act] of original) table[name] = counted(name, act)
  syncBuiltinESMExports()
  try {
    await run()
  } catch (error) {
    if (!state.dead) throw error
  } finally {
    for (const [name, act] of original) table[name] = act
    syncBuiltinESMExports()
  }
  return { acts: count, killed: state.dead }
}

/** A killed process loses nothing that it had written: waiting for the platter proves nothing here. Returns what ends it. */
export function withoutFlushing(): () => void {
  const { fsyncSync } = fs
  const set = (act: typeof fs.fsyncSync): void => {
    fs.fsyncSync = act
    syncBuiltinESMExports()
  }
  set(() => undefined)
  return () => { set(fsyncSync) }
}

function isWriting(flags: unknown): boolean {
  if (typeof flags === 'string') return /[wa+]/.test(flags)
  return typeof flags === 'number' && (flags & (fs.constants.O_CREAT | fs.constants.O_TRUNC)) !== 0
}
