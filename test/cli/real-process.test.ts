import { spawn, spawnSync, type ChildProcess, type StdioOptions } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { removeBackup } from '../helpers/damage.js'
import { uuidOf } from '../helpers/identity.js'
import { H, S1, emptyRoot, userLine, writeBackup, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'
import { hashA, newTime, notes, nowText, oldTime } from './world.js'

// True processes, on the built files that users run: `npm test` builds them first.
const bin = resolve('bin/rewind-admin.js')
if (!existsSync(resolve('dist/src/cli/main.js'))) throw new Error('there is no built command line: npm run build')

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function start(home: string, argv: readonly string[], stdio: StdioOptions = ['ignore', 'pipe', 'pipe']): ChildProcess {
  return spawn(process.execPath, [bin, ...argv, '--now', nowText], { stdio, cwd: home, env: { PATH: process.env.PATH, HOME: home } })
}

function ended(child: ChildProcess): Promise<Ended> {
  const out = { stdout: '', stderr: '' }
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (out.stdout += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (out.stderr += text))
  return new Promise((done) => child.on('close', (code) => { done({ code, ...out }) }))
}

function end(home: string, ...argv: readonly string[]): Promise<Ended> {
  return ended(start(home, argv))
}

/** A store of old sessions, each with a backup, and one that stays. */
async function manyOld(count: number): Promise<{ readonly root: string; readonly home: string; readonly ids: readonly string[] }> {
  const root = await emptyRoot()
  const ids = Array.from({ length: count }, (_, index) => uuidOf(`process/${String(index)}`))
  for (const id of ids) {
    writeTranscript(root, '-p', id, [userLine('m', { session: id, time: oldTime })], { mtime: oldTime })
    writeBackup(root, id, `${H}@v1`, `${id}\n`, { mtime: oldTime })
  }
  writeTranscript(root, '-p', S1, [userLine('m', { session: S1, time: newTime })], { mtime: newTime })
  return { root, home: dirname(root), ids }
}

/** Sessions that are whole in the store; fails for one that is there in part. */
function inPlace(root: string, ids: readonly string[]): string[] {
  return ids.filter((id) => {
    const [transcript, backup] = [existsSync(join(root, `projects/-p/${id}.jsonl`)), existsSync(join(root, `file-history/${id}/${H}@v1`))]
    expect([id, backup]).toEqual([id, transcript])
    return transcript
  })
}

function inTrash(root: string): string[] {
  const trash = join(root, '.rewind-admin/trash')
  return readdirSync(trash).flatMap((run) => readdirSync(join(trash, run)))
}

const expire = ['expire', '--apply', '--max-delete', '100%', '--json']

describe('the program', () => {
  it('ends with the code of what happened: 0, 1, 2, 10 and 65, in a home that it finds by itself', async () => {
    const { home, root } = await notes()
    const codeOf = async (...argv: readonly string[]): Promise<number | null> => (await end(home, ...argv)).code
    expect(await codeOf('verify')).toBe(0)
    expect(await codeOf('expire', '--older-than', 'x')).toBe(2)
    expect(await codeOf('status', '--root', join(home, 'none'))).toBe(10)
    removeBackup(root, S1, `${hashA}@v2`)
    expect(await codeOf('verify')).toBe(1)
    writeFileSync(join(root, 'settings.json'), '{')
    expect(await codeOf('expire')).toBe(65)
    expect(await codeOf('run', 'nightly')).toBe(65)
  })

  it('answers JSON on stdout alone: nothing else is mixed into it', async () => {
    const { home } = await notes()
    const { stdout, stderr } = await end(home, 'verify', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ command: 'verify', exitCode: 0 })
    expect(stderr).toBe('')
  })

  it.each([['expire --apply'], ['purge /home/u/notes --apply'], ['trash empty --apply'], ['run nightly --apply']])(
    'R27: %s asks nothing: it ends by itself with stdin closed, and while stdin is a pipe that never ends',
    async (words) => {
      for (const stdin of ['closed', 'endless'] as const) {
        const { home } = await notes()
        const child = stdin === 'closed' ? startClosed(home, words.split(' ')) : start(home, words.split(' '), ['pipe', 'pipe', 'pipe'])
        const flood = stdin === 'endless' ? setInterval(() => child.stdin?.write('n\n'.repeat(1000)), 5) : undefined
        child.stdin?.on('error', () => undefined)
        const { code } = await ended(child)
        clearInterval(flood)
        expect([stdin, code]).toEqual([stdin, 0])
      }
    },
  )

  it('does its work to the end when the reader of its output has gone', async () => {
    const { home, root, ids } = await manyOld(20)
    const child = start(home, ['expire', '--apply', '--root', root])
    child.stdout?.destroy()
    expect(await ended(child)).toMatchObject({ code: 0, stderr: '' })
    expect(inPlace(root, ids)).toEqual([])
    const list = start(home, ['trash', 'list', '--root', root])
    list.stdout?.destroy()
    expect(await ended(list)).toMatchObject({ code: 0, stderr: '' })
  })

  it('R125: SIGTERM during expire --apply ends it with 143 after the session in work; a second run does the rest', async () => {
    const { home, root, ids } = await manyOld(600)
    const child = start(home, [...expire, '--root', root])
    const first = ended(child)
    while (child.exitCode === null && inPlaceRoughly(root) > 595) await pause(1)
    child.kill('SIGTERM')
    const { code, stdout } = await first
    expect(code).toBe(143)
    const done = (JSON.parse(stdout) as { plan: { session: string }[] }).plan.map(({ session }) => session)
    const left = inPlace(root, ids)
    expect([left.length > 0, done.length > 0, left.length + done.length]).toEqual([true, true, 600])
    expect(inTrash(root).sort()).toEqual(done.sort())
    expect(existsSync(join(root, '.rewind-admin/lock'))).toBe(false)
    const second = await end(home, ...expire, '--root', root)
    expect([second.code, (JSON.parse(second.stdout) as { plan: unknown[] }).plan.length]).toEqual([0, left.length])
    expect(inTrash(root).sort()).toEqual([...ids].sort())
  })

  it('promise 6: SIGKILL in the middle leaves a store that the next run completes', async () => {
    const { home, root, ids } = await manyOld(400)
    const child = start(home, [...expire, '--root', root])
    const first = ended(child)
    while (child.exitCode === null && inPlaceRoughly(root) > 390) await pause(1)
    child.kill('SIGKILL')
    expect((await first).code).toBeNull()
    expect((await end(home, 'run', 'nightly', '--apply', '--root', root)).code).toBe(4)
    expect((await end(home, ...expire, '--root', root)).code).toBe(0)
    expect(inPlace(root, ids)).toEqual([])
    expect(inTrash(root).sort()).toEqual([...ids].sort())
  })

  it('R105: two runs at once end like one: both with 0, and each session was taken once', async () => {
    const { home, root, ids } = await manyOld(150)
    const both = await Promise.all([end(home, ...expire, '--root', root), end(home, ...expire, '--root', root)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    const taken = both.flatMap(({ stdout }) => (JSON.parse(stdout) as { plan: { session: string }[] }).plan.map(({ session }) => session))
    expect(taken.sort()).toEqual([...ids].sort())
    expect(inTrash(root).sort()).toEqual([...ids].sort())
    expect(inPlace(root, [...ids, S1].slice(0, -1))).toEqual([])
  })

  it('npm start on a machine without a store shows the job on a sample and ends with 0', async () => {
    const home = await temporaryFolder()
    const { code, stdout } = await end(home, 'run', 'nightly', '--sample-if-none')
    expect(code).toBe(0)
    expect(stdout).toContain('This is the job on a sample store.')
    expect(readdirSync(home)).toEqual([])
  })
})

/** With descriptor 0 closed, not merely empty. */
function startClosed(home: string, argv: readonly string[]): ChildProcess {
  return spawn('sh', ['-c', 'exec "$0" "$@" <&-', process.execPath, bin, ...argv, '--now', nowText], { cwd: home, env: { PATH: process.env.PATH, HOME: home } })
}

/** Transcripts that are there, without a look at anything else. */
function inPlaceRoughly(root: string): number {
  return readdirSync(join(root, 'projects/-p')).length
}

it('a shell can tell the version without a home', () => {
  const { status, stdout } = spawnSync(process.execPath, [bin, '--version'], { encoding: 'utf8', env: { PATH: process.env.PATH } })
  expect([status, /^\d+\.\d+\.\d+\n$/.test(stdout)]).toEqual([0, true])
})
