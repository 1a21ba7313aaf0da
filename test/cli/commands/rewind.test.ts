import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { lockOwner } from '../../../src/cli/workplace.js'
import { thisMachine } from '../../../src/fs/machine.js'
import { lockStore } from '../../../src/plan/sidecar.js'
import { removeBackup } from '../../helpers/damage.js'
import { S1, S2, emptyRoot } from '../../helpers/store.js'
import { sameTree, snapshotTree } from '../../helpers/tree.js'
import { M1, M2, M3, hashA, newTime, now, nowText } from '../world.js'
import { album, picture } from './album.js'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

const a = { path: '<home>/notes/a.md', action: 'restore', insertions: 0, deletions: 1 }
const b = { path: '<home>/notes/b.md', action: 'delete', insertions: 0, deletions: 1 }

function golden(command: string, fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const head = { schemaVersion: 1, tool: 'rewind-admin', version, command, startedAt: nowText, durationMs: 0, root: '<home>/.claude' }
  return { ...head, applied: false, findings: [], plan: [], kept: [], errors: [], exitCode: 0, skipped: [], failed: [], ...fields }
}

const again = { session: null, message: M2, prompt: 'add the wren', permissionMode: 'plan', images: 0, imagePaths: [] }
const counted = { session: S1, checkpoint: M2, time: newTime, changes: 2, insertions: 0, deletions: 2, skipped: 0, failed: 0 }

describe('rewind', () => {
  it('without --apply prints the plan and changes nothing', async () => {
    const { home, root, cli, json } = await album()
    const before = snapshotTree(home)
    expect(await json('rewind', S1, M2)).toEqual(golden('rewind', { summary: counted, changes: [a, b], conversation: again }))
    const { stdout, stderr, exitCode } = await cli('rewind', S1, M2, '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout.replaceAll(home, '<home>')).toBe(
      [
        `session ${S1}`,
        `checkpoint ${M2}, ${newTime}`,
        '2 files would change, 0 lines in, 2 out',
        '',
        '           lines  file',
        '  restore  +0 -1  <home>/notes/a.md',
        '  delete   +0 -1  <home>/notes/b.md',
        '',
        'The prompt to send again (permission mode plan):',
        '  add the wren',
        '',
        'Run it again with --apply to act.',
        '',
      ].join('\n'),
    )
    sameTree(home, before)
  })

  it('with --apply takes both back and says how to go on', async () => {
    const { root, project, cli, json } = await album()
    const transcript = readFileSync(join(root, `projects/-home-u-notes/${S1}.jsonl`))
    const report = await json('rewind', S1.slice(0, 4), M2.slice(0, 6), '--apply')
    expect(report).toEqual(
      golden('rewind', {
        applied: true,
        summary: { ...counted, rolledBack: false, redoPoint: 1 },
        changes: [a, b],
        conversation: { ...again, session: '<new>' },
      }),
    )
    expect([readFileSync(join(project, 'a.md'), 'utf8'), existsSync(join(project, 'b.md'))]).toEqual(['robin\nwren\n', false])
    expect(readFileSync(join(root, `projects/-home-u-notes/${S1}.jsonl`))).toEqual(transcript)
    const made = readdirSync(join(root, 'projects/-home-u-notes')).map((name) => name.slice(0, 36)).find((id) => id !== S1) ?? ''
    expect(existsSync(join(root, '.rewind-admin/lock'))).toBe(false)
    const { checkpoints } = await cli.json('show', made, '--root', root)
    expect(checkpoints).toMatchObject([{ id: M1, text: 'start the list', restorable: true }])
    expect((await cli('verify', '--root', root, '--fail-on', 'warn')).exitCode).toBe(0)
  })

  it('names the command that resumes the new session as its last line', async () => {
    const { root, cli } = await album()
    const { stdout } = await cli('rewind', S1, M3, '--apply', '--root', root)
    const made = /The conversation goes on in session ([0-9a-f-]{36})\.\n/.exec(stdout)?.[1] ?? ''
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(`claude --resume ${made}`)
    expect(stdout).toContain('The prompt to send again (permission mode plan):\n  is it [Image #1]\n  complete?\n')
    expect(existsSync(join(root, `projects/-home-u-notes/${made}.jsonl`))).toBe(true)
  })

  it('--scope code touches no conversation, --scope conversation no file', async () => {
    const { root, project, json } = await album()
    const projects = snapshotTree(join(root, 'projects'))
    expect(await json('rewind', S1, M2, '--scope', 'code', '--apply')).toEqual(
      golden('rewind', { applied: true, summary: { ...counted, rolledBack: false, redoPoint: 1 }, changes: [a, b] }),
    )
    sameTree(join(root, 'projects'), projects)
    const files = snapshotTree(project)
    expect(await json('rewind', S1, M2, '--scope', 'conversation', '--apply')).toMatchObject({ exitCode: 0, changes: [], conversation: { session: '<new>' } })
    sameTree(project, files)
  })

  it('--diff adds a unified diff, and its content cannot drive a terminal', async () => {
    const { home, root, project, cli, json } = await album()
    writeFileSync(join(project, 'a.md'), 'robin\nwren\n\u001b[31mcrow\n')
    const { diff } = await json('rewind', S1, M2, '--diff')
    expect(String(diff).split('\n').filter((line) => /^(---|\+\+\+|[-+])/.test(line))).toEqual([
      '--- a<home>/notes/a.md', '+++ b<home>/notes/a.md', '-\u001b[31mcrow', '--- a<home>/notes/b.md', '+++ /dev/null', '-heron',
    ])
    const { stdout } = await cli('rewind', S1, M2, '--diff', '--root', root)
    expect(stdout).toContain(`\n--- a${home}/notes/a.md\n`)
    expect(stdout).toContain('crow')
    expect(stdout).not.toContain('\u001b')
  })

  it('--file limits it, more than once if asked', async () => {
    const { json } = await album()
    expect(await json('rewind', S1, M1, '--file', 'b.md')).toMatchObject({ summary: { changes: 1 }, changes: [b] })
    expect(await json('rewind', S1, M2, '--file', 'b.md', '--file', 'a.md')).toMatchObject({ changes: [a, b] })
    expect(await json('rewind', S1, M2, '--file', 'c.md')).toMatchObject({ exitCode: 1, errors: [{}] })
  })

  it('--images writes the pictures of the prompt, and a preview does not', async () => {
    const { home, root, cli, json } = await album()
    const folder = join(home, 'pictures')
    await cli('rewind', S1, M3, '--images', folder, '--root', root)
    expect(existsSync(folder)).toBe(false)
    const path = `${M3}-1.png`
    expect(await json('rewind', S1, M3, '--images', folder, '--apply')).toMatchObject({ conversation: { images: 1, imagePaths: [`<home>/pictures/${path}`] } })
    expect([readFileSync(join(folder, path)), statSync(join(folder, path)).mode & 0o777]).toEqual([picture, 0o600])
    expect((await cli('rewind', S1, M3, '--images', folder, '--apply', '--root', root)).stdout).toContain(`Its pictures:\n  ${folder}/${path}\n`)
  })

  it('a missing backup ends it with 3, nothing is written, and the file is named', async () => {
    const { home, root, cli, json } = await album()
    removeBackup(root, S1, `${hashA}@v2`)
    const before = snapshotTree(home)
    expect(await json('rewind', S1, M2)).toMatchObject({ exitCode: 3, applied: false, failed: [{ path: '<home>/notes/a.md' }] })
    sameTree(home, before)
    const { exitCode, stdout, stderr } = await cli('rewind', S1, M2, '--apply', '--root', root)
    expect(exitCode).toBe(3)
    expect(stdout + stderr).toContain(`${home}/notes/a.md`)
    expect(stdout).not.toContain('claude --resume')
    expect(snapshotTree(join(home, 'notes'))).toEqual(Object.fromEntries(Object.entries(before).filter(([name]) => name.startsWith('notes')).map(([name, node]) => [name.slice(6) || '.', node])))
    expect(await json('rewind', S1, M2, '--partial', '--apply')).toMatchObject({ exitCode: 3, applied: true, summary: { changes: 1, failed: 1 } })
  })

  it.each([
    [['rewind', S1, 'ffff'], 1],
    [['rewind', 'ffff', M2], 1],
    [['rewind', S1], 2],
    [['rewind', S1, M2, '--scope', 'all'], 2],
    [['redo', S1], 1],
    [['fork', S1, 'not-an-id'], 2],
    [['fork', S1, S2, '--copy', '--reflink'], 2],
  ] as const)('%j ends with %i and changes nothing', async (argv, code) => {
    const { home, root, cli } = await album()
    const before = snapshotTree(home)
    const { exitCode, stderr } = await cli(...argv, '--root', root)
    expect([exitCode, stderr !== '']).toEqual([code, true])
    sameTree(home, before)
  })

  it('a lock that another run holds ends what acts with 11, a preview goes on', async () => {
    const { root, project, cli } = await album()
    await cli('rewind', S1, M2, '--scope', 'code', '--apply', '--root', root)
    const held = await lockStore({ root, sidecar: join(root, '.rewind-admin') }, { ...lockOwner(thisMachine()), command: 'the test', now, token: 'ab', waitMs: 0 })
    const before = snapshotTree(project)
    const lines = [['rewind', S1, M1, '--apply'], ['redo', S1, '--apply'], ['fork', S1, S2], ['repair', '--apply']]
    const results = await Promise.all(lines.map((line) => cli(...line, '--root', root)))
    expect(results.map(({ exitCode }) => exitCode)).toEqual([11, 11, 11, 11])
    for (const { stdout, stderr } of results) expect(stdout + stderr).toContain(`locked by process ${String(process.pid)}`)
    for (const line of [['rewind', S1, M1], ['redo', S1], ['repair']]) expect((await cli(...line, '--root', root)).exitCode).toBe(0)
    sameTree(project, before)
    held.release()
    expect((await cli('redo', S1, '--apply', '--root', root)).exitCode).toBe(0)
  })

  it('of two stores takes the one that has the session and leaves the other alone', async () => {
    const one = await album()
    const two = await emptyRoot()
    await album({ root: two, session: S2 })
    const before = snapshotTree(one.home)
    const both = ['--root', one.root, '--root', two] as const
    const report = await one.cli.json('rewind', S2, M2, '--apply', ...both)
    expect(report).toMatchObject({ root: two, exitCode: 0, summary: { session: S2, changes: 2 } })
    sameTree(one.home, before)
    // A prefix that sessions of both have is refused, and so is an id that both have: which is meant is not guessed.
    const other = S1.replace(/^1111/, '2222')
    mkdirSync(join(one.root, 'file-history', other), { mode: 0o700 })
    const several = await one.cli('rewind', '2222', M2, ...both)
    expect([several.exitCode, several.stderr]).toEqual([2, expect.stringContaining('2 sessions begin with 2222: ')])
    mkdirSync(join(one.root, 'file-history', S2), { mode: 0o700 })
    const twice = await one.cli('rewind', S2, M2, '--apply', ...both)
    expect([twice.exitCode, twice.stderr]).toEqual([2, expect.stringContaining(`session ${S2} is in ${one.root} and in ${two}`)])
    expect((await one.cli('rewind', S2, M2, '--root', two)).exitCode).toBe(0)
  })
})
