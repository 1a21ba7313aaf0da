import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, lchownSync, lstatSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'vitest'

/** The user and group id that stands for somebody without rights. */
export const nobody = 65534

export interface ChildResult {
  readonly stdout: string
  readonly stderr: string
  /** Exit code, or `null` when a signal ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface ChildOptions {
  readonly args?: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string
}

/**
 * Runs a node program as somebody without rights, in a child process: a file, or ES module text. Folders it shall reach
 * need `giveAway` first. When we are unprivileged already the child runs as we are.
 */
export async function runUnprivileged(
  program: { readonly file: string } | { readonly source: string },
  options: ChildOptions = {},
): Promise<ChildResult> {
  const head = 'file' in program ? [program.file] : ['--input-type=module', '-e', program.source, '--']
  const identity = process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {}
  const child = spawn(process.execPath, [...head, ...(options.args ?? [])], {
    ...identity,
    cwd: options.cwd ?? '/',
    env: { PATH: process.env.PATH ?? '', ...options.env },
  })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  child.stdin.on('error', () => undefined).end(options.stdin ?? '')
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve({ ...output, code, signal })
    })
  })
}

/**
 * Runs a callback with the effective user of somebody without rights, in the process of this test file (vitest runs
 * each in a child process of its own). Import what the callback needs before: module files may be out of its reach.
 */
export async function asNobody<T>(callback: () => T | Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return callback()
  const groups = process.getgroups?.() ?? []
  process.setgroups?.([nobody])
  process.setegid?.(nobody)
  process.seteuid?.(nobody)
  try {
    return await callback()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
    process.setgroups?.(groups)
  }
}

/** Makes a folder and all in it belong to somebody without rights. Modes stay; links are not followed. */
export function giveAway(path: string): void {
  if (process.getuid?.() !== 0) return
  const stat = lstatSync(path)
  if (stat.isDirectory()) for (const name of readdirSync(path)) giveAway(join(path, name))
  lchownSync(path, nobody, nobody)
  // Changing the owner clears the set-user-id bits.
  if (!stat.isSymbolicLink()) chmodSync(path, stat.mode & 0o7777)
}

export type Need = 'unprivileged' | 'fifo' | 'tmpfs'

const reasons: Record<Need, () => string | undefined> = {
  unprivileged: () => (process.getuid === undefined ? 'this system has no user ids to drop to' : undefined),
  fifo: () => (answers('mkfifo', ['--version']) ? undefined : 'there is no mkfifo on this machine'),
  tmpfs: () => (isOtherFileSystem('/dev/shm') ? undefined : 'there is no second file system at /dev/shm'),
}

/** Skips the test, with one line that says why, when this machine cannot run it. */
export function needs(context: TestContext, ...wanted: readonly Need[]): void {
  for (const need of wanted) {
    const reason = reasons[need]()
    if (reason === undefined) continue
    process.stderr.write(`skipped: ${context.task.name}: ${reason}\n`)
    context.skip(reason)
  }
}

function answers(command: string, args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function isOtherFileSystem(path: string): boolean {
  try {
    return statfsSync(path).type !== statfsSync('/tmp').type
  } catch {
    return false
  }
}
