import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { diffStats, unifiedDiff } from '../../../src/operations/restore/diff.js'
import { H, H2 } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'
import { backup, makeScene, plan, type Scene } from './scene.js'

const [A, B, C] = [`${H}@v2`, `${H2}@v2`, `${H}@v3`]

async function scene(): Promise<Scene> {
  const made = await makeScene({ 'a.txt': A, 'bin.dat': B, 'gone.txt': null, 'new.txt': C, 'same.txt': C, 'mode.sh': C })
  backup(made, A, 'one\ntwo\nthree\n')
  backup(made, B, Buffer.from([1, 0, 2]))
  backup(made, C, 'x\n', 0o755)
  writeFileSync(join(made.project, 'a.txt'), 'one\n2\nthree\nfour\n', { mode: 0o644 })
  writeFileSync(join(made.project, 'bin.dat'), 'text\n')
  writeFileSync(join(made.project, 'gone.txt'), 'p\nq')
  writeFileSync(join(made.project, 'same.txt'), 'x\n', { mode: 0o755 })
  writeFileSync(join(made.project, 'mode.sh'), 'x\n', { mode: 0o644 })
  return made
}

describe('what a restore would change, in lines', () => {
  it('counts insertions and deletions, says what is binary, and reads only', async () => {
    const made = await scene()
    const before = snapshotTree(made.home)
    const stats = diffStats(plan(made)).map(({ path, ...each }) => [path.slice(made.project.length + 1), each])
    expect(Object.fromEntries(stats)).toEqual({
      'a.txt': { action: 'restore', insertions: 1, deletions: 2, binary: false, exact: true },
      'bin.dat': { action: 'restore', insertions: 0, deletions: 0, binary: true, exact: true },
      'gone.txt': { action: 'delete', insertions: 0, deletions: 2, binary: false, exact: true },
      'new.txt': { action: 'restore', insertions: 1, deletions: 0, binary: false, exact: true },
      'mode.sh': { action: 'restore', insertions: 0, deletions: 0, binary: false, exact: true },
    })
    expect(snapshotTree(made.home)).toEqual(before)
  })

  it('shows a unified diff, with paths from the folder that was given', async () => {
    const made = await scene()
    expect(unifiedDiff(plan(made, { files: ['a.txt', 'gone.txt', 'mode.sh'] }), made.project)).toBe(
      [
        'diff --git a/a.txt b/a.txt',
        '--- a/a.txt',
        '+++ b/a.txt',
        '@@ -1,4 +1,3 @@',
        ' one',
        '-2',
        '+two',
        ' three',
        '-four',
        'diff --git a/gone.txt b/gone.txt',
        'deleted file mode 100644',
        '--- a/gone.txt',
        '+++ /dev/null',
        '@@ -1,2 +0,0 @@',
        '-p',
        '-q',
        '\\ No newline at end of file',
        'diff --git a/mode.sh b/mode.sh',
        'old mode 100644',
        'new mode 100755',
        '',
      ].join('\n'),
    )
    expect(unifiedDiff(plan(made, { files: ['bin.dat'] }), '/elsewhere')).toContain(`a${join(made.project, 'bin.dat')}`)
  })
})
