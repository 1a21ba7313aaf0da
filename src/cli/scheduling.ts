import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { fileURLToPath } from 'node:url'
import { thisMachine } from '../fs/machine.js'
import { newToken } from '../plan/run-id.js'
import type { ScheduleHost } from '../schedule/scheduler.js'
import type { ScheduleContext } from '../operations/schedule/installed.js'
import type { InstallOptions } from '../operations/schedule/install.js'
import type { CommandContext } from './context.js'
import { programRunner } from './run-program.js'
import { lockOwner } from './workplace.js'

/** Variables that decide where stores, settings and our own state are; a scheduler would start the job without them. */
const carriedVariables = ['CLAUDE_CONFIG_DIR', 'QWEN_HOME', 'QWEN_RUNTIME_DIR', 'DSH_HOME', 'DSH_REWIND_SNAPSHOT_DIR', 'XDG_CONFIG_HOME', 'XDG_STATE_HOME'] as const

export function scheduleHost(context: CommandContext): ScheduleHost {
  return { platform: process.platform, home: context.home, env: context.env, uid: process.getuid?.(), run: programRunner(context.env), token: newToken }
}

export function scheduleContext(context: CommandContext): ScheduleContext {
  return { now: context.now(), lock: lockOwner(thisMachine()) }
}

/** What of this command line, this program and this machine goes into a schedule. */
export function scheduledParts(context: CommandContext): Pick<InstallOptions, 'program' | 'words' | 'environment' | 'machineKey' | 'installation'> {
  const { globals, env } = context
  const named: readonly (readonly [string, string | undefined])[] = [
    ...globals.roots.map((root) => ['--root', root] as const),
    ['--store', globals.store],
    ['--conversations', globals.conversations],
    ['--runtime-root', globals.runtimeRoot],
    ['--cwd', globals.baseFolder],
    ['--config', globals.config],
    ['--log-file', globals.logFile],
  ]
  // Variables of a Windows user are the same in tasks.
  const carried = process.platform === 'win32' ? [] : carriedVariables.map((name) => [name, env[name] ?? ''] as const)
  return {
    program: [process.execPath, ownScript()],
    words: named.flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
    environment: Object.fromEntries(carried.filter(([, value]) => value !== '')),
    machineKey: `${thisMachine().pidDomain?.split(':')[1] ?? hostname()}\n${userName()}`,
    installation: randomBytes(8).toString('hex'),
  }
}

/** The script that npm links to: two folders above the source, three above the built file. */
export function ownScript(): string {
  const places = ['../../', '../../../'].map((above) => fileURLToPath(new URL(`${above}bin/rewind-admin.js`, import.meta.url)))
  return places.find((place) => existsSync(place)) ?? process.argv[1] ?? 'rewind-admin'
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A user id without an entry, as in containers.
    return String(process.getuid?.() ?? '')
  }
}
