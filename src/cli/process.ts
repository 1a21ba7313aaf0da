import { systemErrorCode } from '../model/errors.js'
import { failureOf, StoppedError } from './errors.js'
import { homeFolder, workingFolder } from './folders.js'
import type { Host } from './host.js'
import { runCli } from './run-cli.js'

/** Runs the command line of this process and sets its exit code; `given` takes the place of what the process would offer. */
export async function runProcess(given: Partial<Host> = {}): Promise<void> {
  const lost = watchOutput()
  process.on('uncaughtException', (error) => {
    // Node would end with 1, which means findings.
    complain(error)
    process.exit(process.exitCode)
  })
  const { exitCode } = await runCli(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: workingFolder(),
    home: homeFolder(),
    signal: watchSignals(),
    ...given,
  })
  process.exitCode = exitCode
  await new Promise((resolve) => process.stdout.write('', resolve))
  const error = lost()
  if (error !== undefined) complain(error)
}

function complain(error: unknown): void {
  const failure = failureOf(error, { verbose: process.argv.includes('--verbose') })
  process.stderr.write(failure.lines.map((line) => `${line}\n`).join(''))
  process.exitCode = failure.exitCode
}

/**
 * A reader that goes away early (`| head`) is no error, and must not stop work in the middle; a result that
 * cannot be written (a full disk) is. Gives a function that hands back the latter.
 */
function watchOutput(): () => unknown {
  let lost: unknown
  process.stdout.on('error', (error) => {
    if (systemErrorCode(error) !== 'EPIPE') lost ??= error
  })
  process.stderr.on('error', () => {
    // There is nowhere left to complain.
  })
  return () => lost
}

/** The first signal asks the command to end after the item in work, a second SIGINT ends it at once. */
function watchSignals(): AbortSignal {
  const controller = new AbortController()
  const stop = (name: 'SIGINT' | 'SIGTERM'): void => {
    const error = new StoppedError(name)
    if (controller.signal.aborted && name === 'SIGINT') process.exit(error.exitCode)
    controller.abort(error)
  }
  process.on('SIGINT', () => {
    stop('SIGINT')
  })
  process.on('SIGTERM', () => {
    stop('SIGTERM')
  })
  return controller.signal
}
