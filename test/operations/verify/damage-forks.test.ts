import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import * as damage from '../../helpers/damage.js'
import { uuidOf } from '../../helpers/identity.js'
import { emptyRoot, H, S1, S2, snap, toolResultLine, userLine, writeBackup, writeTranscript } from '../../helpers/store.js'
import { goodStore } from './good-store.js'
import { check, found } from './verifying.js'

describe('forked sessions', () => {
  /** Two sessions with the same records and copies of the same backup, no proof in either. */
  async function copies(...contents: readonly string[]): Promise<{ root: string; sessions: string[] }> {
    const root = await emptyRoot()
    const sessions = contents.map((content, index) => {
      const session = uuidOf(`copy ${String(index)}`)
      writeTranscript(root, '-p', session, [userLine(S2, { session }), snap(S2, { 'a.txt': `${H}@v1` })])
      writeBackup(root, session, `${H}@v1`, content)
      return session
    })
    return { root, sessions }
  }

  const differing = async (root: string): Promise<string[]> => (await check(root)).findings.filter(({ id }) => id === 'fork-differs').map(({ session, message }) => `${session ?? ''} ${message}`)

  test('equal copies are fine, a differing one is an error', async () => {
    expect(await differing((await copies('same', 'same')).root)).toEqual([])
    const { root, sessions } = await copies('same', 'other')
    const report = await check(root)
    expect(report.findings.filter(({ id }) => id === 'fork-differs')).toHaveLength(1)
    expect(report.exitCode).toBe(1)
    expect(sessions).toContain(report.findings.find(({ id }) => id === 'fork-differs')?.session)
  })

  test('the transcript decides which of the two is wrong, whichever is read first', async () => {
    for (const wrong of [0, 1, 2]) {
      const { root, sessions } = await copies(...['right', 'right', 'right'].with(wrong, 'wrong'))
      for (const [index, session] of sessions.entries()) {
        if (index === wrong) continue
        // Weak as it is, the neighbour's text equals the backup: that is proof.
        const lines = [userLine(S2, { session }), snap(S2, { 'a.txt': `${H}@v1` }), toolResultLine('u', { filePath: '/home/u/project/a.txt', originalFile: 'right', content: 'next' }, { session })]
        writeTranscript(root, '-p', session, lines)
      }
      const found = await differing(root)
      expect(found.length).toBeGreaterThan(0)
      for (const words of found) expect(words).toMatch(new RegExp(`^${sessions[wrong] ?? ''} .*the transcript proves$`))
    }
  })

  test('R59: two sessions that edit the same file are no forks, though their backups have the same name', async () => {
    const root = await emptyRoot()
    for (const [session, hour] of [[S1, '10'], [S2, '11']] as const) {
      writeTranscript(root, '-p', session, [userLine(S2, { session }), snap(S2, { 'a.txt': `${H}@v1` }, `2026-11-01T${hour}:00:00.000Z`)])
      writeBackup(root, session, `${H}@v1`, hour)
    }
    expect(await differing(root)).toEqual([])
  })

  test('a fork by the client is clean, and a copy that is broken in one session is found in that one', async () => {
    const store = await goodStore()
    const fork = store.agent.fork(S2)
    fork.end()
    expect(found(await check(store.root))).toEqual([])
    const path = damage.backupOf(store.root, S2, store.second)
    const bytes = readFileSync(path)
    damage.removeBackup(store.root, S2, store.second)
    writeBackup(store.root, S2, store.second, Buffer.concat([bytes, Buffer.from('!')]))
    const report = await check(store.root)
    expect(report.findings.map(({ severity, session }) => [severity, session])).toEqual([['error', S2]])
  })
})
