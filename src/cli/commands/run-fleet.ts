import { availableParallelism } from 'node:os'
import { UsageError } from '../../model/errors.js'
import type { Report } from '../../model/report.js'
import { runFleet } from '../../operations/fleet/fleet.js'
import { insideHome, type HomePlaces } from '../../operations/fleet/home.js'
import { fleetRoots, type FleetRoot } from '../../operations/fleet/roots.js'
import { isInShard, shardOf, type Shard } from '../../operations/fleet/shard.js'
import type { Job } from '../../operations/run/job.js'
import type { CommandContext } from '../context.js'
import { runInProcess } from '../home-process.js'
import { sessionProgress } from '../workplace.js'
import { durationOption } from './durations.js'

/** Options of a job in many homes. */
export const fleetOptions = {
  'roots-from': { type: 'string', describe: "Many homes: a file with a root a line, or a pattern like '/home/*/.claude'" },
  'shard': { type: 'string', describe: 'Only part i/n of these homes; n alone takes i from JOB_COMPLETION_INDEX' },
  'home-timeout': { type: 'string', describe: 'How long one home may take (1h)' },
} as const

/** Homes that a job is run in. */
export interface Fleet {
  readonly roots: readonly FleetRoot[]
  readonly shard?: Shard
  readonly timeoutMs: number
  readonly places: HomePlaces
}

const defaultTimeoutMs = 3_600_000
/** Longest time that a timer of Node can wait for. */
const longestMs = 2 ** 31 - 1

/** The homes that the options name, `undefined` when they name none. Throws `UsageError`, `NoStoreError`. */
export function fleetOf(
  context: CommandContext,
  options: { readonly rootsFrom?: string | undefined; readonly shard?: string | undefined; readonly homeTimeout?: string | undefined },
): Fleet | undefined {
  const { rootsFrom } = options
  if (rootsFrom === undefined) {
    if (options.shard !== undefined || options.homeTimeout !== undefined) throw new UsageError('--shard and --home-timeout need --roots-from')
    return undefined
  }
  if (context.globals.roots.length > 0) throw new UsageError('--root and --roots-from exclude each other')
  const timeoutMs = durationOption('--home-timeout', options.homeTimeout) ?? defaultTimeoutMs
  if (timeoutMs === 0 || timeoutMs > longestMs) throw new UsageError('--home-timeout must be longer than nothing and at most 24 days')
  const shard = shardOf(options.shard, context.env)
  const from = rootsFrom.startsWith('~/') ? `${context.home}${rootsFrom.slice(1)}` : rootsFrom
  const roots = fleetRoots(from, context.cwd).filter(({ path }) => isInShard(path, shard))
  return { roots, ...(shard === undefined ? {} : { shard }), timeoutMs, places: placesOf(context) }
}

/** Folders that are given once for all homes have to be templates: one folder cannot belong to each of them. Throws `UsageError`. */
function placesOf({ globals: { conversations, runtimeRoot, baseFolder } }: CommandContext): HomePlaces {
  for (const [option, path] of Object.entries({ '--conversations': conversations, '--runtime-root': runtimeRoot, '--cwd': baseFolder }))
    if (path !== undefined && insideHome(path, '/home') === undefined)
      throw new UsageError(`${option} with --roots-from must lie in each home`, { hint: `begin it with {home}, as in ${option} '{home}/work'` })
  return { ...(conversations === undefined ? {} : { conversations }), ...(runtimeRoot === undefined ? {} : { runtimeRoot }), ...(baseFolder === undefined ? {} : { baseFolder }) }
}

interface FleetRun {
  readonly apply: boolean
  /** The installation of a schedule that this run belongs to. */
  readonly scheduled: string | undefined
}

/** Runs the job in each home, in processes of their own. */
export function runOnFleet(context: CommandContext, job: Job, { apply, scheduled }: FleetRun, { roots, shard, timeoutMs, places }: Fleet): Promise<Report> {
  const now = context.now()
  const { store } = context.globals
  return runFleet(roots, job, {
    apply,
    parallel: Math.min(2, availableParallelism()),
    timeoutMs,
    signal: context.signal,
    shard,
    monotonic: () => context.monotonic(),
    progress: sessionProgress(context, 'homes'),
    run: (home, stop) => runInProcess({ ...home, job, apply, now, places, ...(store === undefined ? {} : { store }), ...(scheduled === undefined ? {} : { scheduled }) }, context.env, stop),
  })
}
