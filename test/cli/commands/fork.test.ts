import { existsSync, lstatSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { removeBackup } from '../../helpers/damage.js'
import { S1, S2 } from '../../helpers/store.js'
import { snapshotTree, withoutTimes } from '../../helpers/tree.js'
import { M1, M2, M3, hashA, hashB } from '../world.js'
import { album } from './album.js'

const links = (root: string, session: string): number[] =>
  readdirSync(join(root, 'file-history', session)).sort().map((name) => lstatSync(join(root, 'file-history', session, name)).nlink)

describe('fork', () => {
  it('gives the new session every checkpoint, its backups linked', async () => {
    const { root, cli, json } = await album()
    const transcript = readFileSync(join(root, `projects/-home-u-notes/${S1}.jsonl`))
    expect(await json('fork', '1111', S2)).toMatchObject({
      command: 'fork', applied: true, exitCode: 0, linked: 3, copied: 0, present: 0, findings: [], errors: [],
      summary: { source: S1, target: '<new>', transcript: 'written', checkpoints: 3, linked: 3, copied: 0, missing: 0, differing: 0 },
    })
    expect([links(root, S1), links(root, S2)]).toEqual([[2, 2, 2], [2, 2, 2]])
    expect(readFileSync(join(root, `projects/-home-u-notes/${S1}.jsonl`))).toEqual(transcript)
    const { checkpoints } = await cli.json('show', S2, '--root', root)
    expect(checkpoints).toMatchObject([M1, M2, M3].map((id) => ({ id, restorable: true })))
    // Once more: all of it is there.
    expect(await json('fork', S1, S2)).toMatchObject({ exitCode: 0, linked: 0, copied: 0, present: 3 })
  })

  it('--at cuts the conversation before a message and takes only what is left of it', async () => {
    const { root, json } = await album()
    expect(await json('fork', S1, S2, '--at', M2.slice(0, 8))).toMatchObject({ exitCode: 0, linked: 1, summary: { checkpoints: 1 } })
    expect(readdirSync(join(root, 'file-history', S2))).toEqual([`${hashA}@v1`])
    expect(readFileSync(join(root, `projects/-home-u-notes/${S2}.jsonl`), 'utf8')).not.toContain(M2)
    expect(await json('fork', S1, S2, '--at', M3)).toMatchObject({ exitCode: 2 })
  })

  it.each(['--copy', '--reflink'])('%s makes files of their own', async (flag) => {
    const { root, json } = await album()
    expect(await json('fork', S1, S2, flag)).toMatchObject({ exitCode: 0, linked: 0, copied: 3 })
    expect([links(root, S1), links(root, S2)]).toEqual([[1, 1, 1], [1, 1, 1]])
    expect(readFileSync(join(root, 'file-history', S2, `${hashA}@v2`), 'utf8')).toBe('robin\nwren\n')
  })

  it('--all takes backups too that no checkpoint names', async () => {
    const { root, json } = await album()
    writeFileSync(join(root, 'file-history', S1, `${hashB}@v7`), 'unnamed')
    expect(await json('fork', S1, S2)).toMatchObject({ linked: 3 })
    expect(existsSync(join(root, 'file-history', S2, `${hashB}@v7`))).toBe(false)
    expect(await json('fork', S1, S2, '--all')).toMatchObject({ linked: 1, present: 3 })
  })

  it('names a missing source, exit 3, and one that differs in the target, exit 1; both stay', async () => {
    const { root, cli, json } = await album()
    removeBackup(root, S1, `${hashA}@v2`)
    expect(await json('fork', S1, S2)).toMatchObject({ exitCode: 3, errors: [{ path: `file-history/${S1}/${hashA}@v2` }], findings: [{ id: 'missing-backup' }] })
    expect((await cli('fork', S1, S2, '--root', root)).stdout.trimEnd().split('\n').at(-1)).toBe('rewind-admin repair')
    const other = await album()
    await other.json('fork', S1, S2, '--copy')
    writeFileSync(join(other.root, 'file-history', S2, `${hashB}@v2`), 'other\n')
    const before = withoutTimes(snapshotTree(join(other.root, 'file-history')))
    expect(await other.json('fork', S1, S2)).toMatchObject({ exitCode: 1, summary: { differing: 1 } })
    expect(withoutTimes(snapshotTree(join(other.root, 'file-history')))).toEqual(before)
  })
})
