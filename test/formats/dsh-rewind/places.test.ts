import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { dshRewind, openDshRewind } from '../../../src/formats/dsh-rewind/index.js'
import { formats } from '../../../src/formats/registry.js'
import { findRoots } from '../../../src/settings/roots.js'
import { dshSession, DshStore } from '../../helpers/dsh.js'
import { extractDsh } from '../../helpers/dsh-corpus.js'
import { temporaryFolder } from '../../helpers/temp.js'

const now = Date.parse('2026-11-30T12:00:00Z')

describe('the places of a store (section 1.1)', () => {
  const at = (env: Record<string, string>): string[] => dshRewind.places({ home: '/home/u', env, platform: 'linux' })

  it.each([
    [{}, ['/home/u/.dsh/rewind-snapshots']],
    [{ DSH_HOME: ' ' }, ['/home/u/.dsh/rewind-snapshots']],
    [{ DSH_HOME: '~/d' }, ['/home/u/d/rewind-snapshots', '/home/u/.dsh/rewind-snapshots']],
    [{ DSH_REWIND_SNAPSHOT_DIR: '/snap', DSH_HOME: '/d' }, ['/snap', '/d/rewind-snapshots', '/home/u/.dsh/rewind-snapshots']],
  ])('with %j are %j', (env, places) => {
    expect(at(env)).toEqual(places)
  })

  it('are found both when an early build ignored DSH_HOME, and R18: named in what was looked for when none is there', async () => {
    const home = await temporaryFolder()
    const around = { home, env: { DSH_HOME: join(home, 'd') }, platform: 'linux' } as const
    expect(() => findRoots(formats, around, { roots: [], store: 'dsh-rewind' })).toThrow(expect.objectContaining({ exitCode: 10, message: expect.stringContaining(join(home, 'd', 'rewind-snapshots')) as string }) as Error)
    const [old, set] = [new DshStore(join(home, '.dsh')), new DshStore(join(home, 'd'))]
    expect(findRoots(formats, around, { roots: [] }).map(({ root }) => root)).toEqual([set.root, old.root])
  })

  it('are one store by the home of the agent and by its snapshots, with our folder beside it', async () => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    dsh.markers()
    const around = { home, env: {}, platform: 'linux' } as const
    for (const root of [dsh.home, dsh.root]) {
      expect(dshRewind.detect(root)).toBe(true)
      const store = openDshRewind(root, around)
      expect([store.root, store.sidecar]).toEqual([dsh.root, join(home, '.dsh', '.rewind-admin', 'rewind-snapshots')])
    }
  })

  it.each([
    ['groups with records', (dsh: DshStore) => dsh.put('7/c.json', '{}')],
    ['a journal', (dsh: DshStore) => dsh.put('restore-journal-op-x.json', '{}')],
  ])('anywhere are known by %s', async (_, fill) => {
    const home = await temporaryFolder()
    const dsh = new DshStore(home)
    fill(dsh)
    const moved = join(home, 'elsewhere')
    mkdirSync(moved)
    expect(dshRewind.detect(moved)).toBe(false)
    mkdirSync(join(moved, 's'))
    symlinkSync(join(dsh.folder(), '7'), join(moved, 's', '7'))
    expect(dshRewind.detect(moved)).toBe(false)
    fill(Object.assign(new DshStore(join(home, 'x')), { root: moved }))
    expect(dshRewind.detect(moved)).toBe(true)
  })

  it.each(['projects', 'file-history', '2026'])('are not folders of other programs, such as one with %s in it', async (name) => {
    const home = await temporaryFolder()
    mkdirSync(join(home, name, '11111111-1111-4111-8111-111111111111'), { recursive: true })
    writeFileSync(join(home, name, 'settings.json'), '{}')
    expect(dshRewind.detect(home)).toBe(false)
  })
})

describe('the sessions of a root', () => {
  it('R14, R55: are its clean folders; files, links and hidden names are left out and followed nowhere', async () => {
    const { store } = await extractDsh('cleanup/age-sweep')
    const { sessions, findings } = store.inventory()
    expect(sessions.map(({ id }) => id)).toEqual(['active', 'edge29', 'fresh', 'journal-only', 'nested', 'old', 'pending-only'])
    expect(findings.map(({ id, place }) => [id, place?.path])).toEqual([
      ['foreign-file', '.hidden'],
      ['not-regular', 'link'],
      ['foreign-file', 'stray.txt'],
    ])
  })

  it.each([
    ['team', 'team/alpha', 'alpha/7/c.json'],
    ['team', 'team/alpha/beta', 'alpha/beta/7/c.json'],
  ])('of the first build whose id has a slash stay as they are, and the finding says so: %s holds %s', async (folder, session, record) => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    dsh.put(record, '{}', folder)
    const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
    expect(store.inventory()).toMatchObject({ sessions: [], unrecognised: 1, findings: [{ id: 'foreign-file', place: { path: folder } }] })
    expect(store.inventory().findings[0]?.message).toContain(`the session ${session} of the first build`)
  })

  it('are not what any other folder holds', async () => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    dsh.put('alpha/7/c.txt', 'x', 'team')
    dsh.put('alpha/notes/c.json', 'x', 'team')
    const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
    expect(store.inventory().findings.map(({ message }) => message)).toEqual(['not a name that the plugin makes; left alone'])
  })

  it('are removed whole, or name by name where something foreign lies in them', async () => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    dsh.markers()
    dsh.put('.pending/k-00000000.before', 'x')
    dsh.put('rescue/op-1/0.before', 'x')
    dsh.bytes({ anchor: 7, call: 'c', file: '/p/f', before: 'x', time: 1 })
    const store = openDshRewind(dsh.root, { home, env: {}, platform: 'linux' })
    const ref = { id: dshSession, members: [] }
    expect(store.contents?.(ref)).toMatchObject({ own: [{ path: dshSession, folder: true }], foreign: [] })
    for (const name of ['007/x.json', '8/notes.txt', '.git', 'rescue/op-1/x.txt', '7/sub/y.json']) dsh.put(name, 'x')
    const contents = store.contents?.(ref)
    expect(contents?.foreign).toEqual(['.git', '007', '7/sub', '8/notes.txt', 'rescue/op-1/x.txt'].map((name) => `${dshSession}/${name}`))
    expect(contents?.own.map(({ path }) => path.slice(dshSession.length + 1))).toEqual(['.pending', '7/c-2e7d2c03.before', '7/c-2e7d2c03.json', 'format', 'rescue/op-1/0.before', 'store'])
  })

  it('keep the records of another writer, whatever is removed', async () => {
    const { store, session } = await extractDsh('foreign/third-party-writer')
    expect(store.contents?.(session)).toMatchObject({ own: [] })
    expect(store.contents?.(session).foreign).toHaveLength(3)
    expect(store.read(session, { now }).findings.map(({ id }) => id)).toEqual(['foreign-file', 'foreign-file', 'damaged-record', 'foreign-file'])
  })
})

describe('the policy', () => {
  it('R05: of a file counts when it is switched on, and stops everything when it cannot be used', async () => {
    const { home } = await extractDsh('cleanup/policy-files')
    const verdict = (name: string): unknown => {
      const around = { home: '/nobody', env: { DSH_SNAPSHOT_CLEANUP_CONFIG: join(home, name) }, platform: 'linux' } as const
      return openDshRewind(home, around).retention().map(({ state }) => state.kind)
    }
    expect(verdict('snapshot-cleanup.json')).toEqual(['days'])
    expect(['ok-empty', 'ok-extra'].map((name) => verdict(`variants/${name}.json`))).toEqual([['silent'], ['days']])
    for (const name of ['array', 'enabled-string', 'fraction', 'negative', 'null', 'string-days', 'truncated', 'zero']) {
      expect([name, verdict(`variants/bad-${name}.json`)]).toEqual([name, ['unusable']])
    }
    expect(verdict('nothing.json')).toEqual(['missing'])
  })

  it.each([
    [undefined, 8388608],
    ['', 8388608],
    [' 64 ', 64],
    ['1e3', 1000],
    ['1.5', 8388608],
    ['ten', 8388608],
    ['0', undefined],
    ['-1', undefined],
  ])('of sizes: %j leaves files above %j bytes alone', async (value, limit) => {
    const home = await temporaryFolder()
    const dsh = new DshStore(join(home, '.dsh'))
    const env = value === undefined ? {} : { DSH_REWIND_MAX_FILE_BYTES: value }
    const store = openDshRewind(dsh.root, { home, env, platform: 'linux' })
    expect(store.restoreRules?.liveLimit).toBe(limit)
    expect(store.gates().map(({ effect }) => effect)).toEqual([limit === undefined ? 'files of any size are recorded and restored' : `files above ${String(limit)} bytes are neither recorded nor restored`])
  })
})
