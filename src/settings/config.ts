import { posix, win32 } from 'node:path'

import * as v from 'valibot'

import { readJsonObject } from '../fs/read-small.js'
import { ConfigError } from '../model/errors.js'
import { isAbsolutePath, matchesProject } from '../model/project-path.js'
import { parsePeriod, type RetentionLayer } from '../model/retention.js'
import { jobs, stepKeys, type ConfiguredStep } from './job-settings.js'
import { nearestName } from './nearest.js'
import { notify, notifyKeys, type NotifySettings } from './notify-settings.js'
import { expandHome } from './roots.js'
import { count, duration, object, text } from './shapes.js'

const configName = 'rewind-admin.config.json'

const configLimit = 4 * 1024 * 1024

/** Our own settings with every default filled in. Nothing here makes a command act: only `--apply` does (R16). */
export interface Config {
  /** The file they come from; `undefined` when there is none and all are defaults. */
  readonly file: string | undefined
  /** Data folders of agents to work on when no `--root` is given; none: all that are found. */
  readonly roots: readonly string[]
  readonly pins: {
    /** Session ids, or how they begin. */
    readonly sessions: readonly string[]
    /** Project paths, or `<path>/**` for a folder and everything below it. */
    readonly projects: readonly string[]
  }
  /** Periods of single projects, in whole days; the longest that matches counts. */
  readonly periods: readonly { readonly project: string; readonly days: number }[]
  /** Checkpoints that `cap` keeps; `undefined`: as many as the agent itself. */
  readonly cap: number | undefined
  /** How long removed things stay in the trash, in milliseconds. */
  readonly graceMs: number
  /** A plan above the larger of the two stops. */
  readonly brake: { readonly sessions: number; readonly percent: number }
  /** Age in milliseconds below which nothing expires. */
  readonly floorMs: number
  /** A session that changed within so many milliseconds is left alone. */
  readonly quietPeriodMs: number
  /** Jobs of the user: a name and its steps. */
  readonly jobs: Readonly<Record<string, readonly ConfiguredStep[]>>
  readonly notify: NotifySettings
}

/** What the config needs to know of where it runs. */
export interface ConfigPlace {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly home: string
  readonly platform: NodeJS.Platform
}

const pattern = v.pipe(
  text,
  v.check((value) => !value.replace(/[\\/]\*\*$/, '').includes('*'), 'may hold a star only as a trailing /**'),
  v.check((value) => isAbsolutePath(value) || /^~(?:[\\/]|$)/.test(value), 'must be an absolute path'),
)
const root = v.pipe(text, v.check((value) => isAbsolutePath(value) || /^~(?:[\\/]|$)/.test(value), 'must be an absolute path'))
const days = v.pipe(
  v.number(),
  v.check((value) => parsePeriod(value).kind === 'days', 'must be a whole number of days, 1 or more'),
)

const pins = v.strictObject({ sessions: v.optional(v.array(text), []), projects: v.optional(v.array(pattern), []) })
const period = v.strictObject({ project: pattern, days })
const brake = v.strictObject({
  sessions: v.optional(count(0), 50),
  percent: v.optional(v.pipe(v.number(), v.minValue(0, 'must be 0 or more'), v.maxValue(100, 'must be 100 or less')), 20),
})

const top = v.strictObject({
  $schema: v.optional(v.string()),
  roots: v.optional(v.array(root), []),
  pins: v.optional(v.pipe(object<v.InferInput<typeof pins>>(), pins), {}),
  periods: v.optional(v.array(v.pipe(object<v.InferInput<typeof period>>(), period)), []),
  cap: v.optional(count(1)),
  grace: v.optional(duration, '7d'),
  brake: v.optional(v.pipe(object<v.InferInput<typeof brake>>(), brake), {}),
  floor: v.optional(duration, '24h'),
  quietPeriod: v.optional(duration, '60m'),
  jobs: v.optional(v.pipe(object<v.InferInput<typeof jobs>>(), jobs), {}),
  notify: v.optional(notify, {}),
})

const schema = v.pipe(object<v.InferInput<typeof top>>(), top)

/** Where our configuration stands unless told otherwise: the XDG config folder, or `%APPDATA%` on Windows. */
export function defaultConfigFile({ env, home, platform }: ConfigPlace): string {
  if (platform === 'win32') {
    return win32.join(env.APPDATA ?? win32.join(home, 'AppData', 'Roaming'), 'rewind-admin', configName)
  }
  const xdg = env.XDG_CONFIG_HOME
  // The XDG rules: a value that is not absolute does not count.
  const folder = xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.config')
  return posix.join(folder, 'rewind-admin', configName)
}

/**
 * Reads our configuration from `explicit`, or from its usual place. A file that is not there means defaults, unless it
 * was named. Throws `ConfigError` for anything that cannot be used, naming the file, every key and what it should be.
 */
export function readConfig(place: ConfigPlace, explicit?: string): Config {
  const file = explicit === undefined ? defaultConfigFile(place) : expandHome(explicit, place.home)
  const read = readJsonObject(file, { follow: true, limit: configLimit })
  if (read.kind === 'unusable') throw new ConfigError(`${file} cannot be used: ${read.reason}`, { hint: 'mend or remove the file' })
  if (read.kind === 'missing') {
    if (explicit !== undefined) throw new ConfigError(`${file} does not exist`, { hint: 'check --config' })
    return parseConfig({}, place.home)
  }
  return parseConfig(read.value, place.home, file)
}

/** Checks a configuration and fills in the defaults. Throws `ConfigError`. */
export function parseConfig(value: unknown, home: string, file?: string): Config {
  const parsed = v.safeParse(schema, value)
  if (!parsed.success) {
    const problems = parsed.issues.map(describe).join('; ')
    throw new ConfigError(`${file ?? 'the configuration'}: ${problems}`, { hint: 'nothing was done; mend the configuration and run again' })
  }
  const { grace, floor, quietPeriod, ...rest } = parsed.output
  return {
    file,
    roots: rest.roots.map((path) => expandHome(path, home)),
    pins: { sessions: rest.pins.sessions, projects: rest.pins.projects.map((path) => expandHome(path, home)) },
    periods: rest.periods.map((one) => ({ project: expandHome(one.project, home), days: one.days })),
    cap: rest.cap,
    graceMs: grace,
    brake: rest.brake,
    floorMs: floor,
    quietPeriodMs: quietPeriod,
    jobs: rest.jobs,
    notify: rest.notify,
  }
}

/** Why the configuration keeps a session whatever its age, or `undefined`. */
export function pinReason(config: Config, session: string, projects: readonly string[]): string | undefined {
  const pinned = config.pins.sessions.find((start) => session.startsWith(start))
  if (pinned !== undefined) return `pinned by session ${pinned}`
  const project = config.pins.projects.find((one) => projects.some((path) => matchesProject(one, path)))
  return project === undefined ? undefined : `pinned by project ${project}`
}

/** The periods that the configuration sets for a project, as layers beside those of the agent (R09: the longest wins). */
export function configLayers(config: Config, project: string | undefined): RetentionLayer[] {
  if (project === undefined) return []
  return config.periods
    .filter((one) => matchesProject(one.project, project))
    .map((one) => ({ layer: 'config', file: config.file ?? configName, state: { kind: 'days', days: one.days } }))
}

type Issue = v.InferIssue<typeof schema>

function describe(issue: Issue): string {
  const path = v.getDotPath(issue) ?? '(top level)'
  if (issue.type === 'strict_object' && issue.expected === 'never') return unknownKey(path, issue)
  if (issue.type === 'strict_object' && issue.received === 'undefined') return `${path} is missing`
  if (issue.kind === 'schema' && issue.message.startsWith('Invalid')) {
    return `${path} must be ${typeWords[issue.type] ?? issue.type}, not ${shown(issue.input)}`
  }
  return `${path} ${issue.message}, not ${shown(issue.input)}`
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  array: 'a list',
}

function unknownKey(path: string, issue: Issue): string {
  const steps = (issue.path ?? []).map(({ key }) => key)
  const nearest = nearestName(String(steps.at(-1)), knownKeys(steps.slice(0, -1)))
  return `${path} is not a known key${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
}

function knownKeys(steps: readonly unknown[]): string[] {
  const [section, part] = steps
  if (section === 'pins') return Object.keys(pins.entries)
  if (section === 'brake') return Object.keys(brake.entries)
  if (section === 'periods') return Object.keys(period.entries)
  if (section === 'notify') return notifyKeys(part)
  if (section === 'jobs') return stepKeys
  return Object.keys(top.entries)
}

function shown(input: unknown): string {
  const json = JSON.stringify(input) as string | undefined
  return json === undefined ? 'nothing' : json.length > 60 ? `${json.slice(0, 57)}…` : json
}
