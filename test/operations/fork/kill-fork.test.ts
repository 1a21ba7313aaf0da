import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { thisMachine } from '../../../src/fs/machine.js'
import { fork } from '../../../src/operations/fork/fork.js'
import { emptyRoot, H, S1, snap, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { runChild } from '../../plan/child.js'
import { forkContext, now, openStore, resolved, sessionOf, target } from './fork-context.js'

const project = resolve(import.meta.dirname, '../../..')
const message = '00000000-0000-4000-8000-000000000001'
const backups = 4

let built: string
beforeAll(async () => {
  built = await temporaryFolder(afterAll)
  writeFileSync(join(built, 'package.json'), '{"type":"module"}')
  symlinkSync(join(project, 'node_modules'), join(built, 'node_modules'))
  const source = join(project, 'src')
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true }
  for (const name of readdirSync(source, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts') || name.startsWith('cli')) continue
    const path = join(built, name.replace(/\.ts$/, '.js'))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, ts.transpileModule(readFileSync(join(source, name), 'utf8'), { compilerOptions }).outputText)
  }
})

/** Forks with copies or links and dies by SIGKILL at the n-th of them: before it, in the middle, or after it. */
const victim = `
  import { copyFileSync, linkSync, readFileSync, writeFileSync } from 'node:fs'
  import { openClaudeCode } from './formats/claude-code/index.js'
  import { fork } from './operations/fork/fork.js'
  const [root, source, target, method, at, when, now] = process.argv.slice(-7)
  let count = 0
  const dying = (act) => (from, to) => {
    count += 1
    if (count !== Number(at)) return act(from, to)
    try {
      if (when === 'half') writeFileSync(to, readFileSync(from).subarray(0, 2))
      if (when === 'after') act(from, to)
    } finally {
      process.kill(process.pid, 'SIGKILL')
      for (;;) {}
    }
  }
  const acts = { link: dying(linkSync), copy: dying(copyFileSync) }
  const store = openClaudeCode(root, { home: root, env: {}, platform: 'linux' })
  await fork(store, source, target, { method }, { now: Number(now), pid: process.pid, token: 'dead', processExists: () => true, acts })
`

async function source(): Promise<string> {
  const root = await emptyRoot()
  const names = Array.from({ length: backups }, (_, index) => `${H}@v${String(index + 1)}`)
  writeTranscript(root, '-p', S1, [userLine(message), snap(message, Object.fromEntries(names.map((name) => [name, name])))])
  for (const name of names) writeBackup(root, S1, name, `bytes of ${name}`)
  return root
}

describe('a fork that is killed with SIGKILL (R87)', () => {
  const cases = ['copy', 'link'].flatMap((method) => [1, backups].flatMap((at) => ['before', 'half', 'after'].map((when) => ({ method, at, when }))))
  it.each(cases)('$when $method number $at: the target is not there, and the next run sweeps and finishes', async ({ method, at, when }) => {
    const root = await source()
    const end = await runChild(built, victim, [root, S1, target, method, String(at), when, String(now)])
    expect([end.signal, end.stderr]).toEqual(['SIGKILL', ''])
    const store = openStore(root)
    expect(store.inventory().sessions.map(({ id }) => id)).toEqual([S1])
    expect(readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.rewind-admin')).length).toBeGreaterThan(0)
    const report = await fork(store, S1, target, {}, forkContext({ processExists: (pid) => thisMachine().processExists(pid) }))
    expect(report).toMatchObject({ exitCode: 0, summary: { swept: 2, transcript: 'written' }, extra: { linked: backups } })
    expect(resolved(store, target)).toEqual(resolved(store, S1))
    expect(readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.includes('.rewind-admin'))).toEqual([])
    expect(sessionOf(store, target).members.map(({ kind }) => kind).sort()).toEqual(['backups', 'transcript'])
  })
})
