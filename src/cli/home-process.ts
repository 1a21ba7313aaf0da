import { fork } from 'node:child_process'
import { createRequire } from 'node:module'
import { RewindAdminError } from '../model/errors.js'
import { ExitCode } from '../model/exit-code.js'
import type { Report } from '../model/report.js'
import type { HomeTask } from '../operations/fleet/home.js'
import type { HomeAnswer } from './home-messages.js'

/** How long a process may go on after it was asked to end, in milliseconds: the item in work is one session. */
const patienceMs = 10_000

/** The error of a home as its process had it. */
class HomeError extends RewindAdminError {
  constructor(
    message: string,
    readonly code: string,
    readonly exitCode: ExitCode,
  ) {
    super(message)
  }
}

/**
 * Runs a job in one home in a process of its own, which can be ended whatever it hangs on. When `stop` is aborted it is asked to end;
 * when it does not, it is killed: what it left is completed or rolled back by the next run.
 */
export function runInProcess(task: HomeTask, env: Readonly<Record<string, string | undefined>>, stop: AbortSignal): Promise<Report> {
  return new Promise((resolve, reject) => {
    const child = fork(createRequire(import.meta.url).resolve('#home-worker'), [], {
      cwd: '/',
      // Nothing of the one who runs this but what a process needs to run, and the time zone.
      env: Object.fromEntries(['PATH', 'TZ', 'SystemRoot'].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))),
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    let patience: NodeJS.Timeout | undefined
    const ask = (): void => {
      child.kill('SIGTERM')
      patience = setTimeout(() => {
        child.kill('SIGKILL')
        // A process that hangs in the kernel does not even end then; nobody waits for it.
        child.unref()
        child.channel?.unref()
        settle(() => {
          reject(new HomeError('it did not end when it was asked to, and was killed; the next run completes or rolls back what it left', 'KILLED', ExitCode.partial))
        })
      }, patienceMs)
    }
    const settle = (how: () => void): void => {
      clearTimeout(patience)
      stop.removeEventListener('abort', ask)
      how()
    }
    stop.addEventListener('abort', ask)
    child.on('message', (answer: HomeAnswer) => {
      settle(() => {
        if (answer.kind === 'report') resolve(answer.report)
        else reject(new HomeError(answer.message, answer.code, answer.exitCode))
      })
    })
    child.on('error', (error) => {
      settle(() => {
        reject(new HomeError(`its process could not be started: ${error.message}`, 'NO_PROCESS', ExitCode.partial))
      })
    })
    child.on('exit', (code, signal) => {
      settle(() => {
        reject(new HomeError(`its process ended without an answer (${signal ?? `exit code ${String(code)}`})`, 'NO_ANSWER', ExitCode.partial))
      })
    })
    // When it cannot be sent the process has ended, and that is answered.
    child.send(task, () => undefined)
    if (stop.aborted) ask()
  })
}
