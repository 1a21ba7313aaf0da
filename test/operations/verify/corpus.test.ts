import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { check, found } from './verifying.js'

const stores = corpusStores('claude-code').map(({ version, scenario }) => [version, scenario] as const)

/** Ids of information that the stores of the corpus give reason for: moved paths, open folders, a lost last snapshot. */
const expectedInformation = new Set(['path-hash-differs', 'wide-mode', 'unreferenced-backup'])

describe('stores of the released clients', () => {
  test.each(stores)('%s %s: exit 0, nothing but information, and no backup contradicts its transcript', async (version, scenario) => {
    const { root } = await extractStore(version, scenario)
    const report = await check(root)
    const above = report.findings.filter(({ severity }) => severity !== 'info')
    const lossy = version === '1.0.128' ? ['lossy-backup file-history/6706786a-3e21-4ba6-a7a4-418e406d9769/672ecedaef9a7b24@v1'] : []
    expect(above.map(({ id, severity, place }) => [severity, `${id} ${place?.path ?? ''}`])).toEqual(lossy.map((words) => ['warn', words]))
    expect(report.findings.filter(({ id, severity }) => severity === 'info' && !expectedInformation.has(id))).toEqual([])
    expect(report.exitCode).toBe(0)
    expect(report.summary).toMatchObject({ errors: 0, complete: true })
    expect(report.summary.digested).toBe(report.summary.backups)
  })

  test('basic of 2.0.64, counted by hand: one session, 6 prompts, backups of 4 + 2 + 2 + 1 + 1 bytes', async () => {
    const { root } = await extractStore('2.0.64', 'basic')
    const { summary } = await check(root)
    expect(summary).toMatchObject({ sessions: 1, checkpoints: 6, backups: 5, bytes: 10, sharedInodes: 0 })
  })

  test('fork of 2.1.332, counted by hand: five of 13 backups are one file under two names', async () => {
    const { root } = await extractStore('2.1.332', 'fork')
    const report = await check(root)
    // The old session: 4 + 2 + 2 + 1 + 1 bytes; the fork links all of them and adds 2 + 7 + 2.
    expect(report.summary).toMatchObject({ sessions: 2, backups: 13, bytes: 10 + 11, sharedInodes: 5 })
    expect(found(report)).not.toContainEqual(expect.stringContaining('fork-differs'))
  })

  test('fork of 2.1.112: the two backups whose snapshot was lost with the process are named, and kept', async () => {
    const { root } = await extractStore('2.1.112', 'fork')
    const session = 'd500d28c-ecae-4b9c-8643-8385243a7a0f'
    const unreferenced = (await check(root)).findings.filter(({ id }) => id === 'unreferenced-backup')
    expect(unreferenced.map(({ place }) => place?.path).sort()).toEqual([`file-history/${session}/69982231bd9d5d65@v7`, `file-history/${session}/852cc4588d78b886@v2`])
  })

  test('cap2: every backup of 24 edits of one file is proven by the transcript', async () => {
    for (const version of ['2.0.64', '2.1.112', '2.1.332']) {
      const { root } = await extractStore(version, 'cap2')
      expect((await check(root)).summary).toMatchObject({ checkpoints: 24, backups: 24, proven: 24 })
    }
  })

  test('the rewound session has 10 checkpoints, those of the dead branch too', async () => {
    const { root, oracle } = await extractStore('2.1.332', 'rewound')
    expect((await check(root)).summary).toMatchObject({ checkpoints: oracle?.targets.length })
    expect(oracle?.targets).toHaveLength(10)
  })
})

describe('verify only reads', () => {
  test.each([['2.1.332', 'links'], ['2.1.332', 'fork'], ['2.0.64', 'modes']] as const)('%s %s stays as it is, and no sidecar appears', async (version, scenario) => {
    const store = await extractStore(version, scenario)
    const before = snapshotTree(store.home)
    for (const options of [{}, { quick: true }, { sample: { kind: 'bucket', number: 1, of: 2 } as const }]) await check(store.root, options)
    sameTree(store.home, before)
    expect(existsSync(join(store.root, '.rewind-admin'))).toBe(false)
  })

  test('sealing writes into the sidecar and nowhere else', async () => {
    const store = await extractStore('2.1.332', 'basic')
    // The root itself gains a child.
    const others = (): unknown => Object.entries(snapshotTree(store.root)).filter(([path]) => path !== '.' && !path.startsWith('.rewind-admin'))
    const before = others()
    const report = await check(store.root, { seal: true })
    expect(others()).toEqual(before)
    expect(report.applied).toBe(false)
    expect(snapshotTree(join(store.root, '.rewind-admin'))['.']?.mode).toBe('700')
  })
})
