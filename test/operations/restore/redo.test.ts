import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FenceError, NewerFormatError, NoMatchError } from '../../../src/model/errors.js'
import type { RestoreResult } from '../../../src/operations/restore/apply.js'
import { applyRedo, planRedo, type RedoOptions } from '../../../src/operations/restore/redo.js'
import { delta, H, H2, S1, snap, userLine, writeTranscript } from '../../helpers/store.js'
import { sameTree, snapshotTree, withoutTimes } from '../../helpers/tree.js'
import { apply, backup, inFolder, K, later, leftovers, makeScene, plan, read, type Scene } from './scene.js'

const [A, B] = [`${H}@v2`, `${H2}@v2`]
const large = Buffer.alloc(3 * 1024 * 1024, 'large ')

async function mixed(): Promise<Scene> {
  const others = { 'gone/deep/b.txt': B, 'new.txt': null, 'same.txt': A, 'large.bin': A, 'empty.txt': A, link: A }
  const scene = await makeScene({ 'a.txt': A, ...others })
  backup(scene, A, 'alpha\n')
  backup(scene, B, 'beta\n')
  const put = (name: string, bytes: Buffer | string, mode: number): void => {
    writeFileSync(join(scene.project, name), bytes)
    chmodSync(join(scene.project, name), mode)
  }
  put('a.txt', Buffer.from([0, 255, 10, 13]), 0o4750)
  put('new.txt', 'new', 0o600)
  put('same.txt', 'alpha\n', 0o644)
  put('large.bin', large, 0o640)
  put('empty.txt', '', 0o444)
  symlinkSync('a.txt', join(scene.project, 'link'))
  return scene
}

function redo(scene: Scene, options: RedoOptions = {}): RestoreResult {
  return applyRedo(planRedo(scene.store, read(scene).reading, options), { sidecar: scene.store.sidecar, now: later })
}

const stackOf = (scene: Scene): string => join(scene.store.sidecar, 'redo', S1)

describe('redo', () => {
  it('gives back the tree of before the rewind: bytes, modes, files that were not, folders that the rewind made', async () => {
    const scene = await mixed()
    const before = snapshotTree(scene.project)
    expect(apply(scene)).toMatchObject({ exitCode: 0, point: 1, skipped: [{ path: join(scene.project, 'link') }] })
    expect(existsSync(join(scene.project, 'gone/deep/b.txt'))).toBe(true)
    expect(redo(scene)).toMatchObject({ failed: [], exitCode: 0 })
    expect(withoutTimes(snapshotTree(scene.project))).toEqual(withoutTimes(before))
    expect(() => planRedo(scene.store, read(scene).reading)).toThrow(NoMatchError)
    expect(leftovers(scene.home)).toEqual([])
  })

  it('a folder that the rewind made stays when somebody put a file in it', async () => {
    const scene = await mixed()
    apply(scene)
    writeFileSync(join(scene.project, 'gone/mine.txt'), 'mine')
    expect(redo(scene)).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(scene.project, 'gone/mine.txt'), 'utf8')).toBe('mine')
    expect(existsSync(join(scene.project, 'gone/deep'))).toBe(false)
  })

  it('a preview changes nothing, and two rewinds are undone one by one', async () => {
    const scene = await mixed()
    const first = snapshotTree(scene.project)
    apply(scene)
    writeFileSync(join(scene.project, 'a.txt'), 'by hand')
    const second = snapshotTree(scene.project)
    expect(apply(scene)).toMatchObject({ point: 2 })
    const before = snapshotTree(scene.home)
    planRedo(scene.store, read(scene).reading)
    sameTree(scene.home, before)
    redo(scene)
    expect(withoutTimes(snapshotTree(scene.project))).toEqual(withoutTimes(second))
    redo(scene)
    expect(withoutTimes(snapshotTree(scene.project))).toEqual(withoutTimes(first))
  })

  it('refuses when the session recorded an edit after the rewind, unless forced, and keeps what it then writes over', async () => {
    const scene = await mixed()
    apply(scene)
    const edited = delta('44444444-4444-4444-8444-444444444444', K, 'later.txt', null, { time: '2026-11-02T09:00:01.000Z' })
    const records = { 'a.txt': A, 'new.txt': null }
    writeTranscript(scene.root, '-p', S1, [userLine(K, { cwd: scene.project }), snap(K, records), edited])
    writeFileSync(join(scene.project, 'a.txt'), 'the newer edit')
    const before = snapshotTree(scene.home)
    expect(() => redo(scene)).toThrow(FenceError)
    expect(() => redo(scene)).toThrow(/later\.txt/)
    sameTree(scene.home, before)
    expect(redo(scene, { force: true })).toMatchObject({ exitCode: 0 })
    expect(readFileSync(join(scene.project, 'a.txt'))).toEqual(Buffer.from([0, 255, 10, 13]))
    expect(readFileSync(join(stackOf(scene), 'replaced', 'pack'), 'utf8')).toContain('the newer edit')
  })

  it('writes nothing when a saved file is not what was saved', async () => {
    const scene = await mixed()
    apply(scene)
    const pack = join(stackOf(scene), '1', 'pack')
    const bytes = readFileSync(pack)
    bytes[0] = 1
    writeFileSync(pack, bytes)
    const before = snapshotTree(scene.project)
    const result = redo(scene)
    expect(result).toMatchObject({ changed: [], exitCode: 3, failed: [{ path: join(scene.project, 'a.txt') }] })
    sameTree(scene.project, before)
    expect(existsSync(pack)).toBe(true)
  })

  it('does not follow a folder that became a link since', async () => {
    const scene = await makeScene({ 'sub/a.txt': A })
    backup(scene, A, 'alpha\n')
    mkdirSync(join(scene.project, 'sub'))
    writeFileSync(join(scene.project, 'sub/a.txt'), 'now')
    apply(scene)
    rmSync(join(scene.project, 'sub'), { recursive: true })
    symlinkSync(scene.outside, join(scene.project, 'sub'))
    writeFileSync(join(scene.outside, 'a.txt'), 'not yours')
    expect(redo(scene)).toMatchObject({ changed: [], skipped: [{ path: join(scene.project, 'sub/a.txt') }] })
    expect(readFileSync(join(scene.outside, 'a.txt'), 'utf8')).toBe('not yours')
  })

  it.each([
    ['cut', '{"schemaVersion":1', FenceError],
    ['of a newer version', '{"schemaVersion":2}', NewerFormatError],
    ['with a blob that is a path', '{"schemaVersion":1,"entries":[{"state":"file","blob":"../../x"}]}', FenceError],
  ])('refuses a point that is %s', async (_, content, error) => {
    const scene = await mixed()
    apply(scene)
    writeFileSync(join(stackOf(scene), '1', 'point.json'), content)
    expect(() => planRedo(scene.store, read(scene).reading)).toThrow(error)
  })
})

describe('redo points', () => {
  it('say for every tracked path what was there, and nobody else can read them', async () => {
    const scene = await mixed()
    apply(scene)
    const folder = join(stackOf(scene), '1')
    const point = JSON.parse(readFileSync(join(folder, 'point.json'), 'utf8')) as { entries: { path: string; state: string }[] }
    expect(point).toMatchObject({ schemaVersion: 1, session: S1, checkpoint: K, createdAt: '2026-11-02T09:00:00.000Z' })
    expect(point.entries.map(({ path, state }) => [path.slice(scene.project.length + 1), state])).toEqual([
      ['a.txt', 'file'],
      ['empty.txt', 'file'],
      ['gone/deep/b.txt', 'absent'],
      ['large.bin', 'file'],
      ['link', 'skipped'],
      ['new.txt', 'file'],
      ['same.txt', 'file'],
    ])
    for (const path of [scene.store.sidecar, join(scene.store.sidecar, 'redo'), stackOf(scene), folder]) {
      expect(statSync(path).mode & 0o777, path).toBe(0o700)
    }
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o7777, name).toBe(0o600)
  })

  it('are on the disk before the first file changes', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `f${String(index)}`)
    const scene = await makeScene(Object.fromEntries(names.map((name) => [name, A])))
    backup(scene, A, 'then')
    for (const name of names) writeFileSync(join(scene.project, name), 'now')
    const seen: { saved: string; now: string[] }[] = []
    const syncFileSystem = (): void => {
      const [prepared] = readdirSync(stackOf(scene))
      const saved = readFileSync(join(stackOf(scene), prepared ?? '', 'pack'), 'utf8')
      seen.push({ saved, now: names.map((name) => readFileSync(join(scene.project, name), 'utf8')) })
    }
    apply(scene, plan(scene), { syncFileSystem })
    expect(seen[0]).toEqual({ saved: 'now'.repeat(40), now: names.map(() => 'now') })
  })

  it('are at most 50, the oldest go first', async () => {
    const scene = await makeScene({ 'a.txt': A })
    backup(scene, A, 'then')
    for (let turn = 1; turn <= 52; turn += 1) {
      writeFileSync(join(scene.project, 'a.txt'), `turn ${String(turn)}`)
      apply(scene)
    }
    const numbers = readdirSync(stackOf(scene)).map(Number).sort((a, b) => a - b)
    expect(numbers).toEqual(Array.from({ length: 50 }, (_, index) => index + 3))
    redo(scene)
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('turn 52')
  })

  it('a killed run leaves a point to redo from; its temporary files go at the next rewind, and nothing else', async () => {
    const scene = await makeScene({ 'a.txt': A, 'b.txt': A })
    backup(scene, A, 'then')
    for (const name of ['a.txt', 'b.txt']) writeFileSync(join(scene.project, name), `now ${name}`)
    apply(scene)
    rmSync(join(stackOf(scene), '1', 'finished'))
    const { token } = JSON.parse(readFileSync(join(stackOf(scene), '1', 'point.json'), 'utf8')) as { token: string }
    const [ours, other] = [`.rewind-admin-${token}-2`, '.rewind-admin-0000-2'].map((name) => join(scene.project, name))
    for (const path of [ours ?? '', other ?? '']) writeFileSync(path, 'then')
    mkdirSync(join(stackOf(scene), '.new-0'))
    writeFileSync(join(scene.project, 'b.txt'), 'now b.txt')
    expect(apply(scene)).toMatchObject({ exitCode: 0, point: 2 })
    expect(existsSync(ours ?? '')).toBe(false)
    expect(existsSync(other ?? '')).toBe(true)
    expect(readdirSync(stackOf(scene)).sort()).toEqual(['1', '2'])
    redo(scene)
    redo(scene)
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('now a.txt')
    expect(readFileSync(join(scene.project, 'b.txt'), 'utf8')).toBe('now b.txt')
  })

  it('a sidecar that is a link is refused', async () => {
    const scene = await makeScene({ 'a.txt': inFolder(null, '/') })
    symlinkSync(scene.outside, scene.store.sidecar)
    writeFileSync(join(scene.project, 'b.txt'), 'x')
    const other = await makeScene({ 'b.txt': null })
    writeFileSync(join(other.project, 'b.txt'), 'x')
    expect(() => apply(scene, plan(other))).toThrow(FenceError)
    expect(existsSync(join(other.project, 'b.txt'))).toBe(true)
  })
})
