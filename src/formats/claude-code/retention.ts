import { isAbsolute, join, posix, win32 } from 'node:path'

import { readJsonObject, type JsonFile } from '../../fs/read-small.js'
import { parsePeriod, type RetentionLayer } from '../../model/retention.js'

const periodKey = 'cleanupPeriodDays'

const settingsLimit = 4 * 1024 * 1024

/** One settings file of the agent by its layer. */
export interface SettingsFile {
  readonly layer: 'managed' | 'user' | 'project' | 'local'
  readonly file: string
}

/** Where an administrator's settings stand on a platform (documented paths). */
export function managedSettingsFile(platform: NodeJS.Platform): string {
  if (platform === 'win32') return win32.join('C:\\', 'ProgramData', 'ClaudeCode', 'managed-settings.json')
  if (platform === 'darwin') return posix.join('/Library', 'Application Support', 'ClaudeCode', 'managed-settings.json')
  return posix.join('/etc', 'claude-code', 'managed-settings.json')
}

/**
 * Every settings file that can speak for a store or one of its projects, strongest first for the agent's other keys.
 * `root` is the store's root, `project` a recorded folder; one that is not absolute on this host has no layers here.
 */
export function settingsFiles(root: string, project: string | undefined, managedFile: string | undefined): SettingsFile[] {
  const files: SettingsFile[] = []
  if (managedFile !== undefined) files.push({ layer: 'managed', file: managedFile })
  // A relative text would be looked up in our own working folder, and a drive of Windows means nothing elsewhere.
  if (project !== undefined && isAbsolute(project)) {
    files.push({ layer: 'local', file: join(project, '.claude', 'settings.local.json') })
    files.push({ layer: 'project', file: join(project, '.claude', 'settings.json') })
  }
  files.push({ layer: 'user', file: join(root, 'settings.json') })
  return files
}

/** Reads one settings file; links are followed, as people keep settings in other folders. */
export function readSettings(file: string): JsonFile {
  return readJsonObject(file, { follow: true, limit: settingsLimit })
}

/**
 * What each settings file says about the retention period, all of them read whatever the agent was started with (R01).
 * A file that is not there is `missing`, one without the key `silent`; anything that cannot be used is `unusable` with
 * its reason and never replaced by a default (R05, R06).
 */
export function retentionLayers(root: string, project: string | undefined, managedFile: string | undefined): RetentionLayer[] {
  return settingsFiles(root, project, managedFile).map(({ layer, file }) => ({ layer, file, state: periodState(readSettings(file)) }))
}

function periodState(settings: JsonFile): RetentionLayer['state'] {
  if (settings.kind === 'missing') return { kind: 'missing' }
  if (settings.kind === 'unusable') return { kind: 'unusable', reason: settings.reason }
  if (!Object.hasOwn(settings.value, periodKey)) return { kind: 'silent' }
  const period = parsePeriod(settings.value[periodKey])
  return period.kind === 'days' ? period : { kind: 'unusable', reason: `${periodKey}: ${period.reason}` }
}
