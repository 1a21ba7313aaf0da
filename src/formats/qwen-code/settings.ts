import { isAbsolute, join, posix, win32 } from 'node:path'
import { readSmallFile } from '../../fs/read-small.js'
import { isFields, type Fields } from '../../model/fields.js'
import type { RetentionLayer } from '../../model/retention.js'
import type { Surroundings } from '../format.js'

const settingsLimit = 4 * 1024 * 1024

interface SettingsFile {
  readonly layer: 'system-defaults' | 'user' | 'project' | 'system'
  readonly file: string
}

/** What stands in a settings file; comments are allowed in it. */
type Settings =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly reason: string }
  | { readonly kind: 'object'; readonly value: Fields }

/** Where an administrator's settings stand on a platform (documented paths). */
function systemFolder(platform: NodeJS.Platform): string {
  if (platform === 'win32') return win32.join('C:\\', 'ProgramData', 'qwen-code')
  return platform === 'darwin' ? posix.join('/Library', 'Application Support', 'QwenCode') : posix.join('/etc', 'qwen-code')
}

/** Every settings file that can speak for a store or one of its projects, the weakest first for the agent itself. */
function settingsFiles(root: string, project: string | undefined, { env, platform }: Surroundings): SettingsFile[] {
  const system = systemFolder(platform)
  return [
    { layer: 'system-defaults', file: given(env.QWEN_CODE_SYSTEM_DEFAULTS_PATH) ?? join(system, 'system-defaults.json') },
    { layer: 'user', file: join(root, 'settings.json') },
    // A relative text would be looked up in our own working folder.
    ...(project !== undefined && isAbsolute(project) ? [{ layer: 'project' as const, file: join(project, '.qwen', 'settings.json') }] : []),
    { layer: 'system', file: given(env.QWEN_CODE_SYSTEM_SETTINGS_PATH) ?? join(system, 'settings.json') },
  ]
}

function given(path: string | undefined): string | undefined {
  return path === undefined || path === '' ? undefined : path
}

/**
 * What each settings file says about `general.cleanupPeriodDays` (section 8), all of them read (R01). Fractions are rounded up
 * to whole days. 0 is not followed: it means about one hour, and nobody who wrote it for "never" wants that (R06).
 */
export function retentionLayers(root: string, project: string | undefined, around: Surroundings): RetentionLayer[] {
  return settingsFiles(root, project, around).map(({ layer, file }) => ({ layer, file, state: periodState(readSettings(file)) }))
}

function periodState(settings: Settings): RetentionLayer['state'] {
  if (settings.kind !== 'object') return settings
  const { general } = settings.value
  if (general === undefined) return { kind: 'silent' }
  if (!isFields(general)) return { kind: 'unusable', reason: 'general is not an object' }
  if (!Object.hasOwn(general, 'cleanupPeriodDays')) return { kind: 'silent' }
  const days = general.cleanupPeriodDays
  const refuse = (why: string): RetentionLayer['state'] => ({ kind: 'unusable', reason: `general.cleanupPeriodDays: ${why}` })
  if (typeof days !== 'number') return refuse('it is not a number of days')
  if (days === 0) return refuse('0 means about one hour to the agent; it is not followed')
  if (days < 0) return refuse(`${String(days)} is negative`)
  if (!Number.isSafeInteger(Math.ceil(days))) return refuse(`${String(days)} is too large to be exact`)
  return { kind: 'days', days: Math.ceil(days) }
}

/** The folder of transcripts that the settings name, the strongest file first; `undefined` when none does. */
export function runtimeSetting(root: string, around: Surroundings): string | undefined {
  for (const { file } of settingsFiles(root, undefined, around).toReversed()) {
    const settings = readSettings(file)
    const advanced = settings.kind === 'object' ? settings.value.advanced : undefined
    const folder = isFields(advanced) ? advanced.runtimeOutputDir : undefined
    if (typeof folder === 'string' && folder.trim() !== '') return folder.trim()
  }
  return undefined
}

/** Reads one settings file; links are followed, as people keep settings in other folders. */
function readSettings(file: string): Settings {
  const found = readSmallFile(file, { follow: true, limit: settingsLimit })
  if (found.kind !== 'bytes') return found
  if (found.bytes.length === 0) return { kind: 'unusable', reason: 'it is empty (0 bytes)' }
  try {
    const value: unknown = JSON.parse(withoutComments(new TextDecoder('utf-8', { fatal: true }).decode(found.bytes)))
    return isFields(value) ? { kind: 'object', value } : { kind: 'unusable', reason: 'its top level is not a JSON object' }
  } catch (error) {
    return { kind: 'unusable', reason: error instanceof SyntaxError ? 'it is not valid JSON' : 'it is not valid UTF-8' }
  }
}

/** Takes comments out of a JSON text; what stands in strings stays. */
function withoutComments(text: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\//g, (part) => (part.startsWith('"') ? part : ' '))
}
