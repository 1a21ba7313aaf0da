import { execFileSync } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, rmSync, statfsSync, symlinkSync, writeFileSync, writeSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { TestContext } from 'vitest'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { thisMachine } from '../../src/fs/machine.js'
import { NoMatchError } from '../../src/model/errors.js'
import { redo, rewind } from '../../src/operations/rewind.js'
import { SimulatedAgent } from '../helpers/agent.js'
import { uuidOf } from '../helpers/identity.js'
import { temporaryFolder } from '../helpers/temp.js'
import { snapshotTree, withoutTimes } from '../helpers/tree.js'
import { openStore, sessionOf, target } from '../operations/fork/fork-context.js'
import { contextOf, life, projectOf, remains, rewindTo, sessionsIn, type Life } from '../operations/rewinding.js'
import { runChild } from '../plan/child.js'

/** A file system of 1 MB with a home on it, or the test is skipped with one line that says why. */
async function lifeOnSmallDisk(context: TestContext): Promise<Life> {
  const home = await temporaryFolder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m,mode=700', 'tmpfs', home], { stdio: 'ignore' })
  } catch {
    const reason = 'this user may not mount a tmpfs'
    process.stderr.write(`skipped: ${context.task.name}: ${reason}\n`)
    context.skip(reason)
  }
  onTestFinished(() => { execFileSync('umount', ['-l', home]) })
  const [root, project] = [join(home, '.claude'), join(home, 'project')]
  for (const folder of [root, project]) mkdirSync(folder)
  return { home, root, project, agent: new SimulatedAgent({ root, project, generation: 'G4' }), store: openStore(root) }
}

/** Fills the disk until so many bytes are left. */
function fillUp({ home }: Life, left: number): void {
  const { bavail, bsize } = statfsSync(home)
  const fd = openSync(join(home, 'filler'), 'a')
  try {
    for (let bytes = bavail * bsize - left; bytes > 0; bytes -= 4096) if (writeSync(fd, Buffer.alloc(4096, 'x')) < 4096) break
  } catch {
    // Full.
  } finally {
    closeSync(fd)
  }
  const free = statfsSync(home)
  expect(free.bavail * free.bsize).toBeLessThanOrEqual(left)
}

describe('a disk that is full (R106)', () => {
  // 160 kB now: what the redo point needs. 200 kB and 4 kB then: what the new files need.
  const big = Buffer.alloc(200_000, 'then\n')

  async function prepared(context: TestContext): Promise<Life & { readonly message: string }> {
    const made = await lifeOnSmallDisk(context)
    const { agent } = made
    agent.external('deep/small.txt', 'then\n')
    agent.prompt('begin')
    // Tracked while it is small: the transcript quotes what a tool writes.
    agent.write('big.bin', 'small\n')
    agent.write('deep/small.txt', 'then too\n')
    agent.external('big.bin', big)
    const message = agent.prompt('go')
    agent.end()
    agent.external('big.bin', Buffer.alloc(160_000, 'now\n'))
    rmSync(join(made.project, 'deep'), { recursive: true })
    return { ...made, message }
  }

  it.for([0, 163_840])('with %i bytes free: nothing changed, exit 28, nothing left behind; with room it works', async (left, context) => {
    const made = await prepared(context)
    fillUp(made, left)
    const before = projectOf(made)
    const report = await rewindTo(made, made.message, { scope: 'code' }).catch((error: unknown) => error as { exitCode: number })
    expect(report.exitCode).toBe(28)
    expect(projectOf(made)).toEqual(before)
    expect(remains(made)).toEqual([])
    expect(existsSync(join(made.store.sidecar, 'redo', made.agent.session, '1'))).toBe(false)
    rmSync(join(made.home, 'filler'))
    expect(await rewindTo(made, made.message, { scope: 'code' })).toMatchObject({ exitCode: 0, summary: { changes: 2, redoPoint: 1 } })
    expect(readFileSync(join(made.project, 'big.bin'))).toEqual(big)
  })

  // The redo point takes 8 kB here, the new file 4 kB; the transcript of the new conversation 150 kB.
  it.for([12_288, 16_384, 20_480, 24_576, 32_768, 65_536])('with %i bytes free, enough for the files but not for the new conversation: both stay as they were', async (left, context) => {
    const made = await lifeOnSmallDisk(context)
    const { agent } = made
    agent.external('a.txt', 'then\n')
    agent.prompt('begin')
    agent.write('a.txt', 'now\n')
    agent.prompt('x'.repeat(150_000))
    const message = agent.prompt('go')
    agent.write('a.txt', 'later\n')
    agent.end()
    fillUp(made, left)
    const before = projectOf(made)
    await expect(rewindTo(made, message)).rejects.toMatchObject({ exitCode: 28 })
    expect(projectOf(made)).toEqual(before)
    expect([sessionsIn(made), remains(made)]).toEqual([[agent.session], []])
  })
})

/** Every how many acts on the disk a run is killed; odd, so that both ways to go on get their turn. `REWIND_ADMIN_KILLS=200` is the long run. */
const stride = process.env.REWIND_ADMIN_KILLS === undefined ? 3 : 1

const repository = resolve(import.meta.dirname, '../..')
let built = ''
beforeAll(async () => {
  built = await temporaryFolder(afterAll)
  writeFileSync(join(built, 'package.json'), '{"type":"module"}')
  symlinkSync(join(repository, 'node_modules'), join(built, 'node_modules'))
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true }
  for (const name of readdirSync(join(repository, 'src'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.startsWith('cli')) continue
    const path = join(built, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, ts.transpileModule(readFileSync(join(repository, 'src', name), 'utf8'), { compilerOptions }).outputText)
  }
})

/** Rewinds and dies by SIGKILL at the n-th act on the disk: before it, or with half of a write done. Prints the acts. */
const victim = `
  import fs from 'node:fs'
  import { syncBuiltinESMExports } from 'node:module'
  const [root, home, session, message, newId, now, at] = process.argv.slice(-7)
  let count = 0
  const isRead = (name, args) => name === 'openSync' && (typeof args[1] === 'number' ? (args[1] & 3) === 0 : args[1] === undefined || args[1] === 'r')
  for (const name of ['renameSync', 'unlinkSync', 'rmSync', 'rmdirSync', 'mkdirSync', 'linkSync', 'copyFileSync', 'writeFileSync', 'openSync', 'writeSync', 'fchmodSync', 'chmodSync', 'fsyncSync']) {
    const act = fs[name]
    fs[name] = (...args) => {
      if (isRead(name, args)) return act(...args)
      count += 1
      if (count !== Number(at)) return act(...args)
      if (name === 'writeSync' && Buffer.isBuffer(args[1])) act(args[0], args[1].subarray(0, args[1].length / 2))
      process.kill(process.pid, 'SIGKILL')
      for (;;) {}
    }
  }
  syncBuiltinESMExports()
  const { openClaudeCode } = await import('./formats/claude-code/index.js')
  const { rewind } = await import('./operations/rewind.js')
  const store = openClaudeCode(root, { home, env: {}, platform: 'linux' })
  const ref = store.inventory().sessions.find(({ id }) => id === session)
  count = 0
  const context = { now: Number(now), pid: process.pid, token: 'dead', processExists: () => true, home, windows: false }
  await rewind(store, ref, message, { scope: 'both', apply: true, newId }, context)
  process.stdout.write(String(count))
`

describe('a rewind that is killed with SIGKILL', () => {
  async function working(): Promise<Life & { readonly message: string }> {
    const made = await life()
    const { agent } = made
    agent.external('a.txt', 'a then\n')
    agent.external('gone/b.txt', 'b then\n')
    agent.prompt('begin')
    for (const path of ['a.txt', 'gone/b.txt']) agent.edit(path, 'then', 'soon')
    const message = agent.prompt('go')
    agent.write('a.txt', 'a now\n')
    agent.write('new.txt', 'new\n')
    agent.end()
    agent.remove('gone')
    return { ...made, message }
  }

  const run = async (made: Life & { readonly message: string }, at: number): ReturnType<typeof runChild> =>
    runChild(built, victim, [made.root, made.home, made.agent.session, made.message, target, String(contextOf(made).now), String(at)])

  /** The files of the project, without the folders around them and without temporary files of ours. */
  const filesOf = (made: Life): Record<string, unknown> =>
    Object.fromEntries(Object.entries(withoutTimes(snapshotTree(made.project))).filter(([name, node]) => node.type === 'file' && !name.includes('.rewind-admin-')))

  it('at any act on the disk: each file is the old or the new one, the next rewind ends it, redo leads back, nothing is left behind', async () => {
    const whole = await working()
    const wholeBefore = filesOf(whole)
    const end = await run(whole, 0)
    expect([end.code, end.stderr]).toEqual([0, ''])
    const wholeAfter = filesOf(whole)
    const acts = Number(end.stdout)
    expect(acts).toBeGreaterThan(20)
    for (let at = 1; at <= acts; at += stride) {
      const made = await working()
      const before = filesOf(made)
      expect(before).toEqual(wholeBefore)
      const { signal, stderr } = await run(made, at)
      expect([at, signal, stderr]).toEqual([at, 'SIGKILL', ''])
      const half = filesOf(made)
      for (const name of new Set([...Object.keys(half), ...Object.keys(before), ...Object.keys(wholeAfter)])) {
        expect([before[name], wholeAfter[name]], `act ${String(at)}, ${name}`).toContainEqual(half[name])
      }
      const context = contextOf(made, { processExists: (pid) => thisMachine().processExists(pid) })
      const ref = sessionOf(made.store, made.agent.session)
      const undo = (): boolean => {
        try {
          expect(redo(made.store, ref, { apply: true }, context).exitCode).toBe(0)
          return true
        } catch (error) {
          if (error instanceof NoMatchError) return false
          throw error
        }
      }
      // Every second time it is taken back first.
      if (at % 2 === 0 && undo()) expect(filesOf(made), `act ${String(at)}`).toEqual(before)
      const newId = uuidOf(`again ${String(at)}`)
      expect(await rewind(made.store, ref, made.message, { scope: 'both', apply: true, newId }, context)).toMatchObject({ exitCode: 0, errors: [] })
      expect(filesOf(made), `act ${String(at)}`).toEqual(wholeAfter)
      expect(sessionsIn(made)).toContain(newId)
      expect([at, remains(made)]).toEqual([at, []])
      while (undo()) continue
      expect(filesOf(made), `act ${String(at)}`).toEqual(before)
      expect([at, remains(made)]).toEqual([at, []])
    }
  })
})
