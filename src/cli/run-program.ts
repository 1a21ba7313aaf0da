import { spawn } from 'node:child_process'
import { systemErrorCode } from '../model/errors.js'
import type { ProgramEnd, RunProgram } from '../schedule/program.js'

/** Bytes of output that are kept. */
const outputLimit = 16 * 1024 * 1024

/**
 * Runs programs of this machine with these variables and in plain English. A program that takes too long is killed, and not waited
 * for either: something it started may hold its output open for ever.
 */
export function programRunner(env: Readonly<Record<string, string | undefined>>): RunProgram {
  return (file, words, { timeoutMs, input }) =>
    new Promise((done) => {
      const child = spawn(file, words, { env: { ...env, LC_ALL: 'C' }, stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true })
      const out: Buffer[] = []
      const err: Buffer[] = []
      let room = outputLimit
      const keep = (parts: Buffer[]) => (part: Buffer): void => {
        room -= part.length
        if (room >= 0) parts.push(part)
        else end({ code: undefined, failure: 'it printed too much' })
      }
      const end = (result: Pick<ProgramEnd, 'code' | 'failure'>): void => {
        clearTimeout(timer)
        child.kill('SIGKILL')
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy()
        done({ ...result, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString('utf8') })
      }
      const timer = setTimeout(() => {
        end({ code: undefined, failure: `no answer within ${String(timeoutMs / 1000)} s` })
      }, timeoutMs)
      child.on('error', (error) => {
        end({ code: undefined, failure: systemErrorCode(error) ?? error.message })
      })
      child.on('close', (code, signal) => {
        end(code === null ? { code: undefined, failure: `ended by ${signal ?? 'a signal'}` } : { code })
      })
      child.stdout.on('data', keep(out))
      child.stderr.on('data', keep(err))
      // A program that does not read what it is given says so by its exit code.
      child.stdin.on('error', () => undefined)
      child.stdin.end(input)
    })
}
