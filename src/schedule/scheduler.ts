import type { ScheduledEntry } from './entry.js'
import type { RunProgram } from './program.js'

export const schedulerNames = ['systemd', 'launchd', 'cron', 'schtasks'] as const

export type SchedulerName = (typeof schedulerNames)[number]

/** What a scheduler needs to know of the user and the machine; everything is passed in. */
export interface ScheduleHost {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** As the system has it; `undefined` where users have no numbers. */
  readonly uid: number | undefined
  readonly run: RunProgram
  /** Hex digits, new for each call. */
  token(): string
}

/** One of our entries as it was found. */
export interface InstalledEntry {
  readonly scheduler: SchedulerName
  readonly entry: ScheduledEntry
  /** The file, table or task that holds it. */
  readonly where: string
  /** The scheduler has it loaded; `undefined` when nobody can be asked, as with cron. */
  readonly active: boolean | undefined
  /** It is no longer as we wrote it. */
  readonly changed: boolean
  /** Milliseconds since 1970, when the scheduler itself says so. */
  readonly next?: number
}

/** A file as it would be written, for `schedule print`. */
export interface RenderedFile {
  readonly path: string
  readonly text: string
}

/** One scheduler of the system. All of them do the same; which one is used is data (see choose.ts). */
export interface Scheduler {
  readonly name: SchedulerName
  /** Why it cannot be used on this machine, or `undefined` when it answers. */
  unavailable(host: ScheduleHost): Promise<string | undefined>
  /** Our entries in it. @throws SchedulerError when it is there and cannot be asked */
  installed(host: ScheduleHost): Promise<InstalledEntry[]>
  /**
   * Makes these entries all that is ours in it; none: removes what is ours. Nothing of anybody else changes.
   * @throws SchedulerError when it refuses; what was written is then taken back
   */
  write(entries: readonly ScheduledEntry[], host: ScheduleHost): Promise<void>
  render(entries: readonly ScheduledEntry[], host: ScheduleHost): RenderedFile[]
}
