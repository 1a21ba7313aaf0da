import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative } from 'node:path'
import type { Machine, Store, Surroundings } from '../../formats/format.js'
import { formats } from '../../formats/registry.js'
import { ConfigError, FenceError, NoStoreError, systemErrorCode } from '../../model/errors.js'
import type { Report } from '../../model/report.js'
import type { FormatId } from '../../model/session.js'
import { defaultConfigFile, readConfig, type Config, type ConfigPlace } from '../../settings/config.js'
import { findRoots } from '../../settings/roots.js'
import type { Job } from '../run/job.js'
import { runJob } from '../run/run-job.js'
import type { JobContext } from '../run/steps.js'
import { runScheduled } from '../schedule/first-run.js'
import type { FleetRoot } from './roots.js'

/** A root with the home it lies in, both as real paths, and whom they belong to. */
export interface Home {
  readonly root: string
  readonly home: string
  readonly owner: { readonly uid: number; readonly gid: number }
}

/** What is to be done in one home; it survives JSON. */
export interface HomeTask extends Home {
  readonly job: Job
  readonly apply: boolean
  readonly store?: FormatId
  /** Where parts of the agents' data lie, in which `{home}` stands for the home: see `insideHome`. */
  readonly places?: HomePlaces
  /** The installation of a schedule that the run belongs to: its first run on a home is a preview. */
  readonly scheduled?: string
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Folders of a home that formats cannot find by themselves, each beginning with `{home}`. */
export type HomePlaces = Pick<Surroundings, 'conversations' | 'runtimeRoot' | 'baseFolder'>

/** What a job in one home needs of the machine; everything is passed in. */
export type HomeContext = Omit<JobContext, 'apply' | 'config' | 'now'>

/**
 * Finds out which home a root belongs to. A root that is a link has to stay in its home: whoever owns the home could lead us
 * anywhere. Throws NoStoreError when it is not there, FenceError when it leads out, system errors.
 */
export function openHome({ path }: Pick<FleetRoot, 'path'>): Home {
  const lexical = homeOf(path)
  let home: string
  let root: string
  try {
    home = realpathSync(lexical)
    root = realpathSync(path)
  } catch (error) {
    const code = systemErrorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new NoStoreError(`${path} does not exist`)
    throw error
  }
  if (!isInside(root, home)) throw new FenceError(`${path} leads out of its home, to ${root}; it was left alone`)
  const [ofHome, ofRoot] = [statSync(home), statSync(root)]
  // Nobody but its owner can put something else into the place of what lies in a home.
  const { uid, gid } = ofHome.uid === 0 ? ofRoot : ofHome
  return { root, home, owner: { uid, gid } }
}

/**
 * Runs a job on the store of one home as its owner would: with the settings of that home, ours among them, and nothing of the
 * environment of whoever runs this. Its configuration decides what is kept, never which programs are run or whom they tell.
 * @throws NoStoreError when the root is no store of a known format, ConfigError, system errors
 */
export async function runHome(task: HomeTask, machine: Machine, platform: NodeJS.Platform, context: HomeContext): Promise<Report> {
  const around: Surroundings = { home: task.home, env: {}, platform, ...placesIn(task.home, task.places ?? {}) }
  const [found] = findRoots(formats, around, { roots: [task.root], store: task.store })
  if (found?.root !== task.root) throw new FenceError(`${task.root} is not the folder it was a moment ago; it was left alone`)
  const store = found.format.open(found.root, around)
  const { job, now, scheduled } = task
  const run = (stores: readonly Store[], apply: boolean): Promise<Report> => runJob(stores, job, { ...context, machine, config: configOf(around), apply, now })
  if (scheduled === undefined) return run([store], task.apply)
  const { lock, signal } = context
  return runScheduled([store], { job: job.name, installation: scheduled, apply: task.apply, now, lock, ...(signal === undefined ? {} : { signal }) }, run)
}

/** What a path that begins with `{home}` means in a home; `undefined` for one that does not begin so, or whose words lead out of it. */
export function insideHome(path: string, home: string): string | undefined {
  if (path === homeMark) return home
  if (!path.startsWith(`${homeMark}/`)) return undefined
  const inside = join(home, path.slice(homeMark.length))
  return inside === home || isInside(inside, home) ? inside : undefined
}

const homeMark = '{home}'

/** The same folders in a home; paths that are no templates stay as they are. */
export function placesIn(home: string, { conversations, runtimeRoot, baseFolder }: { readonly [Name in keyof HomePlaces]: string | undefined }): HomePlaces {
  const place = (path: string): string => insideHome(path, home) ?? path
  return {
    ...(conversations === undefined ? {} : { conversations: place(conversations) }),
    ...(runtimeRoot === undefined ? {} : { runtimeRoot: place(runtimeRoot) }),
    ...(baseFolder === undefined ? {} : { baseFolder: place(baseFolder) }),
  }
}

/** The configuration of a home, which must lie in it. */
function configOf(place: ConfigPlace): Config {
  const file = defaultConfigFile(place)
  let real = file
  try {
    real = realpathSync(file)
  } catch {
    // Reading it says what is wrong with it.
  }
  if (!isInside(real, place.home)) throw new ConfigError(`${file} leads out of its home, to ${real}; nothing was done there`)
  return readConfig(place)
}

/** The home in which a format keeps its store at this path; for a store in an unusual place, the folder that holds it. */
function homeOf(path: string): string {
  for (let above = dirname(path); above !== dirname(above); above = dirname(above)) {
    const around: Surroundings = { home: above, env: {}, platform: 'linux' }
    if (formats.some((format) => format.places(around).includes(path))) return above
    if (!basename(above).startsWith('.')) break
  }
  return dirname(path)
}

function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '' && !isAbsolute(way) && way.split(/[\\/]/)[0] !== '..' && join(folder, way) === path
}
