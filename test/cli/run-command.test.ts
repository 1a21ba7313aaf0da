import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commandRunner } from '../../src/cli/run-command.js'
import type { CommandEnd } from '../../src/operations/notify/means.js'
import { temporaryFolder } from '../helpers/temp.js'

const runCommand = commandRunner({ PATH: process.env.PATH, SECRET: 'x' })

function run(source: string, options: { readonly input?: string; readonly timeoutMs?: number; readonly words?: readonly string[]; readonly signal?: AbortSignal } = {}): Promise<CommandEnd> {
  return runCommand([process.execPath, '-e', source, '--', ...(options.words ?? [])], {
    input: options.input ?? '',
    timeoutMs: options.timeoutMs ?? 30_000,
    env: { REWIND_ADMIN_JOB: 'nightly' },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
}

describe('a hook as a process', () => {
  it('gets its words as they are, the input, and the environment with ours in it', async () => {
    const folder = await temporaryFolder()
    const file = join(folder, 'seen.json')
    const source = `const fs=require('fs');fs.writeFileSync(${JSON.stringify(file)},JSON.stringify([fs.readFileSync(0,'utf8'),process.argv.slice(1),process.env.REWIND_ADMIN_JOB]))`
    expect(await run(source, { input: 'a report\n', words: ['$(touch x)', 'a b'] })).toEqual({ kind: 'exit', code: 0, complaint: '' })
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(['a report\n', ['$(touch x)', 'a b'], 'nightly'])
  })

  it('gives its exit code and the last line that it wrote on standard error', async () => {
    expect(await run('console.log("x".repeat(1e6));console.error("first\\nlast \\n\\n");process.exitCode=75')).toEqual({ kind: 'exit', code: 75, complaint: 'last' })
    expect(await run('process.kill(process.pid,"SIGKILL")')).toEqual({ kind: 'signal', signal: 'SIGKILL', complaint: '' })
  })

  it('that does not read a large input is no error', async () => {
    expect(await run('', { input: 'x'.repeat(4_000_000) })).toEqual({ kind: 'exit', code: 0, complaint: '' })
  })

  it('that is not there could not be started', async () => {
    expect(await runCommand(['/nowhere/hook'], { input: '', timeoutMs: 1000, env: {} })).toEqual({ kind: 'not started', reason: 'ENOENT' })
  })

  it('that takes too long is ended, with whatever it started, also when it ignores being asked', async () => {
    const folder = await temporaryFolder()
    const pidFile = join(folder, 'pid')
    const stubborn = `process.on('SIGTERM',()=>{});const c=require('child_process').spawn(process.execPath,['-e','process.on("SIGTERM",()=>{});setInterval(()=>{},1e3)'],{stdio:'inherit'});require('fs').writeFileSync(${JSON.stringify(pidFile)},String(c.pid));setInterval(()=>{},1000)`
    expect(await run(stubborn, { timeoutMs: 1500 })).toEqual({ kind: 'too long' })
    expect(existsSync(pidFile)).toBe(true)
    const pid = Number(readFileSync(pidFile, 'utf8'))
    await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false)
  })

  it('that leaves a process behind which keeps its standard error open is over all the same', async () => {
    const pidFile = join(await temporaryFolder(), 'pid')
    const leaves = `const c=require('child_process').spawn(process.execPath,['-e','setTimeout(()=>{},45000)'],{stdio:['ignore','ignore','inherit'],detached:true});c.unref();require('fs').writeFileSync(${JSON.stringify(pidFile)},String(c.pid))`
    expect(await run(leaves)).toEqual({ kind: 'exit', code: 0, complaint: '' })
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(isRunning(pid)).toBe(true)
    process.kill(pid, 'SIGKILL')
  })

  it('is ended when the run is stopped', async () => {
    const controller = new AbortController()
    const ended = run('setInterval(()=>{},1000)', { signal: controller.signal })
    setTimeout(() => {
      controller.abort()
    }, 300)
    expect(await ended).toMatchObject({ kind: 'signal' })
  })
})

/** Whether a process runs; one that has ended and was not fetched yet does not. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))
  } catch {
    return false
  }
}
