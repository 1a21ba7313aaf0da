import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { S1, delta, setTime } from '../../helpers/store.js'
import { sameTree, snapshotTree, withoutTimes } from '../../helpers/tree.js'
import { M2, M3, newTime, nowText } from '../world.js'
import { album } from './album.js'

// The mirror of a rewind to the second message: crow and heron come back.
const changes = [
  { path: '<home>/notes/a.md', action: 'restore', insertions: 1, deletions: 0 },
  { path: '<home>/notes/b.md', action: 'restore', insertions: 1, deletions: 0 },
]

describe('redo', () => {
  it('previews, then gives back the files of before the rewind', async () => {
    const { home, root, project, cli, json } = await album()
    const before = withoutTimes(snapshotTree(project))
    await cli('rewind', S1, M2, '--apply', '--root', root)
    const rewound = snapshotTree(home)
    const summary = { session: S1, checkpoint: null, time: null, changes: 2, insertions: 2, deletions: 0, skipped: 0, failed: 0 }
    expect(await json('redo', S1)).toMatchObject({ command: 'redo', startedAt: nowText, applied: false, summary, changes, skipped: [], failed: [], errors: [], exitCode: 0 })
    const { stdout } = await cli('redo', S1, '--diff', '--root', root)
    expect(stdout).toContain('2 files would change, 2 lines in, 0 out\n')
    expect(stdout.split('\n').filter((line) => /^[-+](?![-+])/.test(line))).toEqual(['+crow', '+heron'])
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('Run it again with --apply to act.')
    sameTree(home, rewound)
    expect(await json('redo', S1, '--apply')).toMatchObject({ applied: true, summary: { ...summary, rolledBack: false }, changes, exitCode: 0 })
    expect(withoutTimes(snapshotTree(project))).toEqual(before)
    const none = await cli('redo', S1, '--apply', '--root', root)
    expect(none.exitCode).toBe(1)
    expect(none.stderr).toContain(`session ${S1} has no rewind to undo`)
  })

  it('refuses after a newer edit of the session and names it; --force goes on', async () => {
    const { root, project, cli } = await album()
    const before = withoutTimes(snapshotTree(project))
    await cli('rewind', S1, M2, '--scope', 'code', '--apply', '--root', root)
    const transcript = join(root, `projects/-home-u-notes/${S1}.jsonl`)
    appendFileSync(transcript, `${delta('m9', M3, 'c.md', null, { time: '2026-11-30T12:30:00.000Z' })}\n`)
    setTime(transcript, newTime)
    const late = ['--now', '2026-11-30T13:00:00.000Z', '--root', root]
    const rewound = snapshotTree(project)
    const refused = await cli('redo', S1, '--apply', ...late)
    expect([refused.exitCode === 0, refused.stderr.includes('c.md'), refused.stderr.includes('--force')]).toEqual([false, true, true])
    sameTree(project, rewound)
    expect((await cli('redo', S1, '--force', '--apply', ...late)).exitCode).toBe(0)
    expect(withoutTimes(snapshotTree(project))).toEqual(before)
  })
})
