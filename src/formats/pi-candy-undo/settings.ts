import { isAbsolute, join } from 'node:path'
import { readJsonObject, type JsonFile } from '../../fs/read-small.js'
import { isFields, type Fields } from '../../model/fields.js'
import { parsePeriod, type RetentionLayer } from '../../model/retention.js'
import type { Gate } from '../format.js'

const settingsKey = 'candyUndo'
const settingsLimit = 4 * 1024 * 1024

/** Snapshots that the plugin keeps of a session unless told otherwise (formats/pi-candy-undo section 11). */
const defaultCap = 200
const defaultRedoItems = 50

interface Around {
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
}

interface SettingsFile {
  readonly layer: 'user' | 'project'
  readonly file: string
}

/** Folder of pi's own settings and conversations. */
export function agentFolder({ home, env }: Around): string {
  const configured = env.PI_CODING_AGENT_DIR
  if (configured === undefined || configured === '') return join(home, '.pi', 'agent')
  return withHome(configured, home)
}

/** Where the plugin keeps its store: what the global settings say, and the default place. */
export function storePlaces(around: Around): string[] {
  const settings = read(settingsFile(around))
  const configured = settings.kind === 'object' ? optionsOf(settings.value)?.storageDir : undefined
  const place = join(around.home, '.pi', 'file-history')
  if (typeof configured !== 'string' || configured === '') return [place]
  const expanded = withHome(configured, around.home)
  // A relative one lies in whatever folder pi was started in.
  return isAbsolute(expanded) && expanded !== place ? [expanded, place] : [place]
}

/**
 * Where our own recorder keeps its store unless it is told otherwise: `REWIND_ADMIN_RECORDS`, else `rewind-admin/sessions` in the
 * user's folder of data. It is not below the plugin's folder, which the plugin sweeps.
 */
export function recorderFolder({ home, env }: Around): string {
  const configured = env.REWIND_ADMIN_RECORDS
  if (configured !== undefined && isAbsolute(configured)) return configured
  const data = env.XDG_DATA_HOME
  return join(data !== undefined && isAbsolute(data) ? data : join(home, '.local', 'share'), 'rewind-admin', 'sessions')
}

/** What the global settings say of the sizes of a session; wrong values are the defaults, as for the plugin. */
export function limitsOf(around: Around): { readonly snapshots: number; readonly redoItems: number } {
  const settings = read(settingsFile(around))
  const options = settings.kind === 'object' ? optionsOf(settings.value) : undefined
  return {
    snapshots: wholeNumber(options?.maxSnapshotsPerSession, 1) ?? defaultCap,
    redoItems: wholeNumber(options?.maxRedoStackSize, 0) ?? defaultRedoItems,
  }
}

/**
 * What each settings file says about the retention period (section 11). 0 is "never"; null in the settings of a project
 * says nothing. Any other wrong value makes the plugin take its default of 30 days, which may be less than was meant: it is
 * unusable here, so that nothing expires.
 */
export function retentionLayers(around: Around, project: string | undefined): RetentionLayer[] {
  return settingsFiles(around, project).map(({ layer, file }) => ({ layer, file, state: periodState(read(file), layer) }))
}

/** The switches that decide whether the plugin makes snapshots. */
export function readGates(around: Around, project: string | undefined): Gate[] {
  const gates = settingsFiles(around, project).flatMap(({ layer, file }): Gate[] => {
    const settings = read(file)
    const options = settings.kind === 'object' ? optionsOf(settings.value) : undefined
    if (options === undefined || !Object.hasOwn(options, 'enabled') || (options.enabled === null && layer === 'project')) return []
    const { enabled } = options
    const stops = enabled === false
    const effect = stops ? 'no snapshots are made' : enabled === true ? 'snapshots are made' : 'not true or false: the agent takes its default, and snapshots are made'
    return [{ gate: `${settingsKey}.enabled`, value: JSON.stringify(enabled), from: file, effect, stops }]
  })
  if (gates.length > 0) return gates
  return [{ gate: `${settingsKey}.enabled`, value: undefined, from: undefined, effect: 'snapshots are made (the default)', stops: false }]
}

function settingsFile(around: Around): string {
  return join(agentFolder(around), 'settings.json')
}

function settingsFiles(around: Around, project: string | undefined): SettingsFile[] {
  const user: SettingsFile = { layer: 'user', file: settingsFile(around) }
  return project !== undefined && isAbsolute(project) ? [{ layer: 'project', file: join(project, '.pi', 'settings.json') }, user] : [user]
}

function read(file: string): JsonFile {
  return readJsonObject(file, { follow: true, limit: settingsLimit })
}

function optionsOf(settings: Fields): Fields | undefined {
  const options = settings[settingsKey]
  return isFields(options) ? options : undefined
}

function periodState(settings: JsonFile, layer: SettingsFile['layer']): RetentionLayer['state'] {
  if (settings.kind === 'missing') return { kind: 'missing' }
  if (settings.kind === 'unusable') return { kind: 'unusable', reason: settings.reason }
  if (!Object.hasOwn(settings.value, settingsKey)) return { kind: 'silent' }
  const options = optionsOf(settings.value)
  if (options === undefined) return { kind: 'unusable', reason: `${settingsKey} is not an object` }
  if (!Object.hasOwn(options, 'cleanupPeriodDays')) return { kind: 'silent' }
  const days = options.cleanupPeriodDays
  if (days === null && layer === 'project') return { kind: 'silent' }
  if (days === 0) return { kind: 'days', days: Number.POSITIVE_INFINITY }
  const period = parsePeriod(days)
  return period.kind === 'days' ? period : { kind: 'unusable', reason: `${settingsKey}.cleanupPeriodDays: ${period.reason}; the agent takes its default of 30 days` }
}

function wholeNumber(value: unknown, least: number): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least ? value : undefined
}

function withHome(path: string, home: string): string {
  return path === '~' ? home : path.startsWith('~/') ? join(home, path.slice(2)) : path
}
