import { availableParallelism } from 'node:os'
import type { Machine, Store, Surroundings } from '../formats/format.js'
import { formats } from '../formats/registry.js'
import type { LockOptions } from '../fs/lock.js'
import { thisMachine } from '../fs/machine.js'
import { UsageError } from '../model/errors.js'
import type { Finding } from '../model/finding.js'
import { placesIn } from '../operations/fleet/home.js'
import { findSession } from '../operations/show.js'
import { readConfig, type Config } from '../settings/config.js'
import { findRoots } from '../settings/roots.js'
import type { CommandContext } from './context.js'
import { lockHost } from './lock-host.js'

/** What most commands work on: the stores that were named or found, our configuration, and facts of this machine. */
export interface Workplace {
  readonly stores: readonly Store[]
  readonly config: Config
  readonly around: Surroundings
  readonly machine: Machine
}

/** What formats need to know of where the program runs. */
export function surroundingsOf(context: CommandContext): Surroundings {
  const { conversations, runtimeRoot, baseFolder } = context.globals
  return {
    home: context.home,
    env: context.env,
    platform: process.platform,
    ...placesIn(context.home, { conversations, runtimeRoot, baseFolder }),
  }
}

/** Our configuration: `--config`, else the file in the usual place. Throws `ConfigError`. */
export function configOf(context: CommandContext): Config {
  return readConfig(surroundingsOf(context), context.globals.config)
}

/** Opens every store that `--root` names, else those of the configuration, else all that are found. Throws `NoStoreError`. */
export function openWorkplace(context: CommandContext): Workplace {
  const around = surroundingsOf(context)
  const config = configOf(context)
  const { roots, store } = context.globals
  const found = findRoots(formats, around, { roots: roots.length > 0 ? roots : config.roots, store })
  const opened = found.map(({ format, root }) => format.open(root, around))
  // One store may be named by the agent's home and by the folder in it.
  const stores = opened.filter((each, index) => opened.findIndex(({ format, root }) => format === each.format && root === each.root) === index)
  return { stores, config, around, machine: thisMachine() }
}

/**
 * The same with only the store that holds the named sessions; unchanged when none is named. Throws `NoMatchError` for an id
 * that no store has, `UsageError` when they lie in several stores. `elsewhere` says which stores were passed over.
 */
export function narrowTo(place: Workplace, ids: readonly string[] | undefined, now: number): Workplace & { readonly elsewhere: readonly Finding[] } {
  if (ids === undefined || ids.length === 0 || place.stores.length < 2) return { ...place, elsewhere: [] }
  const found = ids.map((id) => findSession(place.stores, id, now))
  const stores = [...new Set(found.map(({ store }) => store))]
  if (stores.length > 1) throw new UsageError('the sessions lie in several stores', { hint: 'name one store with --root' })
  return { ...place, stores, elsewhere: found.flatMap(({ elsewhere }) => elsewhere) }
}

/** Milliseconds that a command waits for another run before it gives up. */
const lockWait = 10_000

/** Who takes the lock of a store: this process, on this host and in this pid namespace. */
export function lockOwner(machine: Machine): Pick<LockOptions, 'pid' | 'host' | 'processes' | 'waitMs'> {
  return { pid: process.pid, host: lockHost(machine), processes: machine, waitMs: lockWait }
}

/** Threads that read content. */
export function verifyThreads(): number {
  return Math.min(2, availableParallelism())
}

/** Shows how far a loop over sessions is. */
export function sessionProgress(context: CommandContext, label: string): (done: number, total: number) => void {
  let last = 0
  return (done, total) => {
    if (done <= last || last === 0) {
      context.progress.begin({ label, total, unit: 'items' })
      last = 0
    }
    context.progress.advance(done - last)
    last = done
    if (done === total) context.progress.end()
  }
}
