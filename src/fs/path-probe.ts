import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { systemErrorCode } from '../model/errors.js'

/** What the disk says about a recorded project path; replaced in tests to stand for other machines. */
export interface PathProbe {
  /** The path free of links and in the spelling of the disk, `undefined` when it cannot be resolved. */
  realPath(path: string): string | undefined
  /** Whether the file system takes two spellings that differ in case for one, `undefined` when that cannot be seen. */
  foldsCase(path: string): boolean | undefined
  /** `gone` only when the folder above is there, so that a disk that is not mounted is not taken for it (R28). */
  presence(path: string): 'there' | 'gone' | 'unknown'
}

/** Asks this machine. */
export const pathProbe: PathProbe = { realPath, foldsCase, presence }

function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path)
  } catch {
    return undefined
  }
}

/** Looks the nearest folder that exists up under its name with the case of the letters turned over. */
function foldsCase(path: string): boolean | undefined {
  for (let at = path; dirname(at) !== at; at = dirname(at)) {
    const turned = turnCase(basename(at))
    const there = identity(at)
    if (there === undefined || turned === basename(at)) continue
    return identity(join(dirname(at), turned)) === there
  }
  return undefined
}

function presence(path: string): 'there' | 'gone' | 'unknown' {
  const code = errorOf(path)
  if (code === undefined) return 'there'
  return code === 'ENOENT' && errorOf(dirname(path)) === undefined ? 'gone' : 'unknown'
}

function turnCase(name: string): string {
  return Array.from(name, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())).join('')
}

function identity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev.toString()}:${ino.toString()}`
  } catch {
    return undefined
  }
}

function errorOf(path: string): string | undefined {
  try {
    statSync(path)
    return undefined
  } catch (error) {
    return systemErrorCode(error) ?? 'UNKNOWN'
  }
}
