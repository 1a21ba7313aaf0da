import { describe, expect, it } from 'vitest'
import type { BackupRecord } from '../../src/model/backup.js'
import type { Resolution } from '../../src/model/resolve.js'
import { decide, wantedPaths, type FileNode, type Observation } from '../../src/model/restore-plan.js'

const file: FileNode = { kind: 'file', mode: 0o644, size: 5, nlink: 1, uid: 0, gid: 0, dev: 1, ino: 2, mtimeMs: 3, ctimeMs: 4 }
const present = { kind: 'file', mode: 0o644, size: 5, offset: 0 } as const

function backup(name = 'aaaaaaaaaaaaaaaa@v2', parent?: string): Resolution {
  const record: BackupRecord = { name, version: 2, ...(parent === undefined ? {} : { parent }) }
  return { state: 'backup', name, record }
}

function absent(parent?: string): Resolution {
  return { state: 'absent', record: { name: null, version: 1, ...(parent === undefined ? {} : { parent }) } }
}

function seen(change: Partial<Observation> = {}): Observation {
  return { node: file, parent: { real: '/p', missing: 0 }, backup: present, equal: true, ...change }
}

const restore = { action: 'restore', backup: 'aaaaaaaaaaaaaaaa@v2', offset: 0, size: 5, mode: 0o644 }

describe('what a restore does to one path (section 4)', () => {
  it.each([
    ['equal mode, size and bytes: nothing', backup(), seen(), { action: 'unchanged' }],
    ['other bytes: restored', backup(), seen({ equal: false }), restore],
    ['other mode alone: restored', backup(), seen({ node: { ...file, mode: 0o755 } }), restore],
    ['other size: restored', backup(), seen({ node: { ...file, size: 6 } }), restore],
    ['no file: restored', backup(), seen({ node: { kind: 'absent' } }), restore],
    ['null and a file: deleted', absent(), seen(), { action: 'delete' }],
    ['null and no file: nothing', absent(), seen({ node: { kind: 'absent' } }), { action: 'unchanged' }],
  ])('%s', (_, resolution, observation, decision) => {
    expect(decide(resolution, observation)).toEqual(decision)
  })

  it.each([
    ['a symbolic link', { node: { kind: 'link' } }],
    ['a folder', { node: { kind: 'folder' } }],
    ['a pipe', { node: { kind: 'special', what: 'pipe' } }],
    ['a hard link', { node: { ...file, nlink: 2 } }],
    ['a folder that was moved behind a link', { parent: { real: '/p', missing: 0, link: '/q' } }],
    ['a place of ours', { fenced: 'ours' }],
    ['a folder that cannot be followed', { parent: { missing: 0, trouble: 'a circle' } }],
  ] as const)('rule 2: %s is skipped, be it to restore or to delete', (_, change) => {
    expect(decide(backup(), seen(change))).toMatchObject({ action: 'skip' })
    expect(decide(absent(), seen(change))).toMatchObject({ action: 'skip' })
  })

  it('rule 2: a parent that is no longer the recorded one is skipped, and one that is may lie behind a link', () => {
    expect(decide(backup(undefined, '/old'), seen({ equal: false }))).toMatchObject({ action: 'skip' })
    expect(decide(absent('/old'), seen())).toMatchObject({ action: 'skip' })
    expect(decide(backup(undefined, '/p'), seen({ equal: false, parent: { real: '/p', missing: 0, link: '/q' } }))).toEqual(restore)
  })

  it.each([
    [{ kind: 'missing' }],
    [{ kind: 'not-regular' }],
    [{ kind: 'unreadable', reason: 'EACCES' }],
    [{ kind: 'damaged', reason: 'seal' }],
  ] as const)('R34: a backup that is %j fails its path, and is never read as "did not exist"', (state) => {
    expect(decide(backup(), seen({ backup: state }))).toMatchObject({ action: 'fail' })
  })

  it('a backup that is not needed may be missing', () => {
    expect(decide(absent(), seen({ backup: { kind: 'missing' } }))).toEqual({ action: 'delete' })
    expect(decide(backup(), seen({ backup: { kind: 'missing' }, node: { kind: 'link' } }))).toMatchObject({ action: 'skip' })
  })

  it('a record that nobody can follow is unknown, whatever stands there', () => {
    expect(decide({ state: 'unknown', reason: 'odd' }, seen({ node: { kind: 'link' } }))).toEqual({ action: 'unknown', reason: 'odd' })
  })
})

describe('keys that stand for one file (R102)', () => {
  const own = (record: Resolution): BackupRecord => (record as Resolution & { record: BackupRecord }).record

  it('become one path, and a path that is alone stays alone', () => {
    const wanted = wantedPaths(new Map([['src/a', backup()], ['/p/src/a', backup()], ['b', absent()]]), new Map(), '/p')
    expect(wanted).toEqual([
      { path: '/p/b', keys: ['b'], resolution: absent() },
      { path: '/p/src/a', keys: ['src/a', '/p/src/a'], resolution: backup() },
    ])
  })

  it("the checkpoint's own record goes before the first record of another key, in either order", () => {
    const resolutions: [string, Resolution][] = [['a', absent()], ['/p/a', backup()]]
    for (const order of [resolutions, resolutions.toReversed()]) {
      const [only] = wantedPaths(new Map(order), new Map([['/p/a', own(backup())]]), '/p')
      expect(only?.resolution).toEqual(backup())
    }
  })

  it('that disagree with equal right make the file unknown', () => {
    const resolutions = new Map([['a', absent()], ['/p/a', backup()]])
    expect(wantedPaths(resolutions, new Map(), '/p')[0]?.resolution.state).toBe('unknown')
  })

  it('a key that stands for no file is unknown, with its reason', () => {
    expect(wantedPaths(new Map([['a\0', backup()]]), new Map(), '/p')).toMatchObject([{ path: 'a\0', resolution: { state: 'unknown' } }])
  })
})
