import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, type TestContext } from 'vitest'
import { H } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { needs } from '../../helpers/unprivileged.js'
import { apply, backup, inFolder, leftovers, makeScene, plan, writeLines, type Scene } from './scene.js'

const A = `${H}@v2`
const names = Array.from({ length: 40 }, (_, index) => `f${String(index).padStart(2, '0')}`)

/** Forty files in a folder, each with its recorded parent: enough for one sync of the file system before the first act. */
async function fortyFiles(recorded: boolean): Promise<Scene> {
  const scene = await makeScene({})
  const folder = join(scene.project, 'sub')
  mkdirSync(folder)
  writeLines(scene, Object.fromEntries(names.map((name) => [`sub/${name}`, recorded ? inFolder(A, folder, 2) : A])))
  backup(scene, A, 'then')
  for (const where of [folder, scene.outside]) for (const name of names) writeFileSync(join(where, name), 'now')
  return scene
}

function swapForLink(scene: Scene): void {
  renameSync(join(scene.project, 'sub'), join(scene.project, 'sub.aside'))
  symlinkSync(scene.outside, join(scene.project, 'sub'))
}

describe('a folder that is swapped for a link (R55)', () => {
  it.each([[true], [false]])('after the plan: nothing is written through it (parent recorded: %s)', async (recorded) => {
    const scene = await fortyFiles(recorded)
    const made = plan(scene)
    const outside = snapshotTree(scene.outside)
    swapForLink(scene)
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3 })
    expect(apply(scene, made, { partial: true })).toMatchObject({ changed: [], exitCode: 3 })
    sameTree(scene.outside, outside)
  })

  it.each([[true], [false]])('after everything was prepared: nothing is written through it (partial: %s)', async (partial) => {
    const scene = await fortyFiles(true)
    const outside = snapshotTree(scene.outside)
    const syncFileSystem = (): void => {
      if (!existsSync(join(scene.project, 'sub.aside'))) swapForLink(scene)
    }
    expect(apply(scene, plan(scene), { syncFileSystem, partial })).toMatchObject({ changed: [], exitCode: 3 })
    sameTree(scene.outside, outside)
    for (const name of names) expect(readFileSync(join(scene.project, 'sub.aside', name), 'utf8')).toBe('now')
  })

  it('a missing folder that turns up as a link is not written through', async () => {
    const scene = await makeScene({ 'made/here/a.txt': A })
    backup(scene, A, 'then')
    const made = plan(scene)
    symlinkSync(scene.outside, join(scene.project, 'made'))
    const outside = snapshotTree(scene.outside)
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3 })
    sameTree(scene.outside, outside)
  })

  it('the backup folder, swapped after the plan, is not read through', async () => {
    const scene = await fortyFiles(true)
    const made = plan(scene)
    writeFileSync(join(scene.outside, A), 'secret')
    renameSync(made.source, `${made.source}.aside`)
    symlinkSync(scene.outside, made.source)
    expect(() => apply(scene, made)).toThrow(/leads to|link/)
    expect(readFileSync(join(scene.project, 'sub', 'f00'), 'utf8')).toBe('now')
    expect(leftovers(scene.home)).toEqual([])
  })
})

describe('a target that is replaced', () => {
  const outsideFile = (scene: Scene): string => join(scene.outside, 'f00')
  const replacements: readonly [string, (path: string, scene: Scene) => void, ((context: TestContext) => void)?][] = [
    ['a link to a file outside', (path, scene) => { symlinkSync(outsideFile(scene), path) }],
    ['a link to nothing', (path) => { symlinkSync('not-there', path) }],
    ['a folder', (path) => { mkdirSync(path) }],
    ['a pipe', (path) => { execFileSync('mkfifo', [path]) }, (context) => { needs(context, 'fifo') }],
    ['a device', (path) => { execFileSync('mknod', [path, 'c', '1', '3']) }, (context) => { if (process.getuid?.() !== 0) context.skip() }],
    ['another file', (path) => { writeFileSync(path, 'someone else') }],
    ['a hard link to a file outside', (path, scene) => { execFileSync('ln', [outsideFile(scene), path]) }],
  ]

  it.for(replacements)('by %s before the act is left as it is, and so is all else', async ([, replace, check], context) => {
    check?.(context)
    const scene = await fortyFiles(true)
    const made = plan(scene)
    const target = join(scene.project, 'sub', 'f20')
    rmSync(target)
    replace(target, scene)
    const before = snapshotTree(scene.home)
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3, failed: [{ path: target }] })
    const after = snapshotTree(scene.home)
    expect(after['project/sub/f20']).toEqual(before['project/sub/f20'])
    expect(after['outside/f00']).toEqual(before['outside/f00'])
    expect(after['project/sub/f00']?.sha256).toEqual(before['project/sub/f00']?.sha256)
  })

  it.for(replacements)('by %s when all was prepared is left as it is, and the others are put back', async ([, replace, check], context) => {
    check?.(context)
    const scene = await fortyFiles(true)
    const target = join(scene.project, 'sub', 'f20')
    const outside = snapshotTree(scene.outside)
    let done = false
    const syncFileSystem = (): void => {
      if (done) return
      done = true
      rmSync(target)
      replace(target, scene)
    }
    const result = apply(scene, plan(scene), { syncFileSystem })
    expect(result).toMatchObject({ changed: [], rolledBack: true, notRolledBack: [], failed: [{ path: target }] })
    const contents = (folder: string): unknown => Object.values(snapshotTree(folder)).map(({ sha256, mode, type }) => [sha256, mode, type])
    expect(contents(scene.outside)).toEqual(Object.values(outside).map(({ sha256, mode, type }) => [sha256, mode, type]))
    for (const name of names.filter((each) => each !== 'f20')) expect(readFileSync(join(scene.project, 'sub', name), 'utf8')).toBe('now')
    expect(leftovers(scene.home)).toEqual([])
  })

  it('a file that turns up where none was is not written over', async () => {
    const scene = await makeScene({ 'a.txt': A })
    backup(scene, A, 'then')
    const made = plan(scene)
    writeFileSync(join(scene.project, 'a.txt'), 'made meanwhile')
    expect(apply(scene, made)).toMatchObject({ changed: [], exitCode: 3 })
    expect(readFileSync(join(scene.project, 'a.txt'), 'utf8')).toBe('made meanwhile')
  })
})

describe('keys that climb', () => {
  it('a key with .. names the file it names, and a link on the way is not followed', async () => {
    const scene = await makeScene({ '../outside/a.txt': null, '../door/b.txt': null, 'sub/../../door/c.txt': null })
    symlinkSync('outside', join(scene.home, 'door'))
    for (const name of ['a.txt', 'b.txt', 'c.txt']) writeFileSync(join(scene.outside, name), 'x')
    expect(apply(scene)).toMatchObject({ exitCode: 0, changed: [{ path: join(scene.outside, 'a.txt') }] })
    expect(existsSync(join(scene.outside, 'a.txt'))).toBe(false)
    for (const name of ['b.txt', 'c.txt']) expect(existsSync(join(scene.outside, name))).toBe(true)
  })

  it('__proto__ and constructor are file names like others', async () => {
    const scene = await makeScene({})
    const lines = `{"__proto__":{"backupFileName":"${A}","version":2},"constructor":{"backupFileName":null,"version":1}}`
    const records = JSON.parse(lines) as Record<string, { backupFileName: string | null; version: number }>
    writeLines(scene, records)
    backup(scene, A, 'then')
    writeFileSync(join(scene.project, 'constructor'), 'x')
    expect(plan(scene).items.map((item) => item.keys[0])).toContain('constructor')
    expect(apply(scene)).toMatchObject({ exitCode: 0 })
    expect(existsSync(join(scene.project, 'constructor'))).toBe(false)
    expect(readFileSync(join(scene.project, '__proto__'), 'utf8')).toBe('then')
  })
})
