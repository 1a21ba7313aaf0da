import { ExitCode } from '../../model/exit-code.js'
import type { Report } from '../../model/report.js'
import type { HookSettings } from '../../settings/notify-settings.js'
import type { CommandEnd, NotifyMeans } from './means.js'

export type HookEvent = 'before' | 'after'

/** What came of a hook. */
export interface HookResult {
  /** The hook asked not to do the job now. */
  readonly putOff: boolean
  /** What went wrong, in words. */
  readonly problem?: string
}

/** Runs the hook of an event with the report as JSON on standard input. Never throws. */
export async function runHook(hook: HookSettings | undefined, event: HookEvent, job: string, report: Report, means: NotifyMeans): Promise<HookResult> {
  if (hook === undefined) return { putOff: false }
  const env = {
    REWIND_ADMIN_EVENT: event,
    REWIND_ADMIN_JOB: job,
    ...(event === 'after' ? { REWIND_ADMIN_EXIT_CODE: String(report.exitCode) } : {}),
  }
  const stop = event === 'before' && means.signal !== undefined ? { signal: means.signal } : {}
  const end = await means.runCommand(hook.command, { input: `${means.json(report)}\n`, timeoutMs: hook.timeoutMs, env, ...stop })
  if (event === 'before' && end.kind === 'exit' && end.code === ExitCode.putOff) return { putOff: true }
  const problem = problemOf(end, hook)
  return { putOff: false, ...(problem === undefined ? {} : { problem: `the hook ${event} the job (${hook.command[0] ?? ''}) ${problem}` }) }
}

function problemOf(end: CommandEnd, { timeoutMs }: HookSettings): string | undefined {
  if (end.kind === 'not started') return `could not be started: ${end.reason}`
  if (end.kind === 'too long') return `was ended, because it took longer than ${String(timeoutMs / 1000)} s`
  if (end.kind === 'exit' && end.code === 0) return undefined
  const how = end.kind === 'exit' ? `ended with exit code ${String(end.code)}` : `was ended by ${end.signal}`
  return end.complaint === '' ? how : `${how}: ${end.complaint}`
}
