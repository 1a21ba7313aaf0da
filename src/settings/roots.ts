import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'

import { NoStoreError, systemErrorCode, UsageError } from '../model/errors.js'
import type { FormatId } from '../model/session.js'

/** Where an agent may keep its stores. */
interface Around {
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

/** What is asked of a format here: settings know formats by this alone. */
interface StoreFormat {
  readonly id: FormatId
  places(around: Around): string[]
  detect(root: string): boolean
}

/** A store that was found: what kind, and the real path of its root. */
export interface FoundRoot<F> {
  readonly format: F
  readonly root: string
}

/**
 * The stores to work on. Given roots must exist and be recognised; with none given, all that are found in the places
 * of each format. `store` narrows both to one format. Roots are resolved once (R02), and the same one comes once.
 *
 * Throws `NoStoreError` naming what was looked for, and `UsageError` when a given root looks like two formats.
 */
export function findRoots<F extends StoreFormat>(
  formats: readonly F[],
  around: Around,
  given: { readonly roots: readonly string[]; readonly store?: FormatId | undefined },
): FoundRoot<F>[] {
  const asked = formats.filter((format) => given.store === undefined || format.id === given.store)
  const found = given.roots.length > 0 ? givenRoots(asked, around, given.roots) : knownRoots(asked, around)
  const seen = new Set<string>()
  return found.filter(({ format, root }) => {
    const key = `${format.id} ${root}`
    return !seen.has(key) && seen.add(key)
  })
}

/** Puts the home folder in place of a leading `~`, which a shell leaves alone in quotes, after `=` and in files. */
export function expandHome(path: string, home: string): string {
  return path === '~' ? home : /^~[\\/]/.test(path) ? join(home, path.slice(2)) : path
}

function givenRoots<F extends StoreFormat>(formats: readonly F[], around: Around, roots: readonly string[]): FoundRoot<F>[] {
  return roots.map((given) => {
    const path = expandHome(given, around.home)
    const root = realFolder(path)
    if (typeof root !== 'string') {
      throw new NoStoreError(`${path}: ${root.reason}`, { hint: 'give --root the data folder of the agent, such as ~/.claude' })
    }
    const matching = formats.filter((format) => format.detect(root))
    const [format] = matching
    if (format === undefined) {
      throw new NoStoreError(`${path} is not a store of ${listed(formats.map(({ id }) => id))}`, {
        hint: 'give --root the data folder of the agent itself, not one above or below it',
      })
    }
    if (matching.length > 1) {
      throw new UsageError(`${path} could be a store of ${listed(matching.map(({ id }) => id))}`, { hint: 'add --store <format>' })
    }
    return { format, root }
  })
}

function knownRoots<F extends StoreFormat>(formats: readonly F[], around: Around): FoundRoot<F>[] {
  const found: FoundRoot<F>[] = []
  const looked: string[] = []
  for (const format of formats) {
    for (const place of format.places(around)) {
      const root = realFolder(place)
      if (typeof root !== 'string') {
        looked.push(`${place} (${format.id}: ${root.reason})`)
      } else if (format.detect(root)) {
        found.push({ format, root })
      } else {
        looked.push(`${place} (${format.id}: not recognised)`)
      }
    }
  }
  if (found.length === 0) {
    throw new NoStoreError(`no store was found; looked for ${looked.length === 0 ? 'nothing' : looked.join(', ')}`, {
      hint: 'name one with --root <dir>',
    })
  }
  return found
}

function realFolder(path: string): string | { readonly reason: string } {
  try {
    const real = realpathSync(path)
    return statSync(real).isDirectory() ? real : { reason: 'it is not a folder' }
  } catch (error) {
    const code = systemErrorCode(error)
    return { reason: code === 'ENOENT' || code === 'ENOTDIR' ? 'it does not exist' : `it cannot be opened (${code ?? 'unknown error'})` }
  }
}

function listed(ids: readonly string[]): string {
  return ids.length === 0 ? 'any format' : ids.join(' or ')
}
