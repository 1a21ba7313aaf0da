import { spawn, type ChildProcess } from 'node:child_process'
import type { CommandEnd, RunCommand } from '../operations/notify/means.js'

/** Time between asking a program to end and ending it, in milliseconds. */
const graceMs = 2000

/** How much of standard error is kept for the last line of it. */
const complaintLimit = 4096
const lineLimit = 200

/** Runs a hook as a process of its own: no shell, its standard output goes nowhere, and what it started ends with it. */
export function commandRunner(env: Readonly<Record<string, string | undefined>>): RunCommand {
  return ([program = '', ...words], options) =>
    new Promise((resolve) => {
      const child = spawn(program, words, {
        env: { ...env, ...options.env },
        stdio: ['pipe', 'ignore', 'pipe'],
        // A group of its own, so that it can be ended whole.
        detached: process.platform !== 'win32',
        windowsHide: true,
      })
      let complaint = Buffer.alloc(0)
      let stopped: CommandEnd | undefined
      const settle = (end: CommandEnd): void => {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', stop)
        // A grandchild may hold it open.
        child.stderr.destroy()
        resolve(stopped ?? end)
      }
      const end = (how: CommandEnd): void => {
        stopped ??= how
        kill(child, 'SIGTERM')
        setTimeout(() => {
          kill(child, 'SIGKILL')
          settle(how)
        }, graceMs).unref()
      }
      const stop = (): void => {
        end({ kind: 'signal', signal: 'a signal to this run', complaint: '' })
      }
      const timer = setTimeout(() => {
        end({ kind: 'too long' })
      }, options.timeoutMs)
      options.signal?.addEventListener('abort', stop)
      child.stderr.on('data', (chunk: Buffer) => {
        complaint = Buffer.concat([complaint, chunk]).subarray(-complaintLimit)
      })
      child.on('error', (error) => {
        settle({ kind: 'not started', reason: 'code' in error ? String(error.code) : error.message })
      })
      child.on('exit', (code, signal) => {
        // What it started may not have listened.
        if (stopped !== undefined) kill(child, 'SIGKILL')
        // What it wrote last may still be on its way.
        setImmediate(() => {
          const said = lastLine(complaint)
          settle(code === null ? { kind: 'signal', signal: signal ?? 'a signal', complaint: said } : { kind: 'exit', code, complaint: said })
        })
      })
      // It need not read what it is given.
      child.stdin.on('error', () => undefined)
      child.stdin.end(options.input)
      if (options.signal?.aborted === true) stop()
    })
}

function kill(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined) return
  try {
    if (process.platform === 'win32') child.kill(signal)
    else process.kill(-child.pid, signal)
  } catch {
    // It has ended.
  }
}

function lastLine(bytes: Buffer): string {
  const lines = bytes.toString('utf8').split('\n').map((line) => line.trim())
  return (lines.findLast((line) => line !== '') ?? '').slice(0, lineLimit)
}
