import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { FenceError, NoMatchError } from '../../src/model/errors.js'
import { redo, rewind } from '../../src/operations/rewind.js'
import { verify } from '../../src/operations/verify/verify.js'
import type { Generation } from '../helpers/agent.js'
import { extractStore } from '../helpers/corpus.js'
import { flipBit, removeBackup } from '../helpers/damage.js'
import { uuidOf } from '../helpers/identity.js'
import { snap, userLine, writeBackup, writeTranscript, H, S1 } from '../helpers/store.js'
import { sameTree, snapshotTree, withoutTimes } from '../helpers/tree.js'
import { asNobody, giveAway, needs } from '../helpers/unprivileged.js'
import { openStore, resolved, sessionOf, target } from './fork/fork-context.js'
import { machine, now, seal } from './repair/repair-context.js'
import { contextOf, life, projectOf, redoIn, remains, rewindTo, sessionsIn, threeMessages, type Life } from './rewinding.js'

const generations: readonly Generation[] = ['G1', 'G2', 'G3', 'G4']
const read = ({ project }: Life, path: string): string => readFileSync(join(project, path), 'utf8')

describe('rewind --scope code', () => {
  it.each(generations)('%s: gives the files the state of the message and leaves the conversation alone', async (generation) => {
    const made = await threeMessages(generation)
    const [a, fresh] = [join(made.project, 'a.txt'), join(made.project, 'sub/new.txt')]
    const transcript = snapshotTree(join(made.root, 'projects'))
    const report = await rewindTo(made, made.second, { scope: 'code' })
    // a.txt: TWO goes, two comes. sub/new.txt: its two lines go.
    expect(report).toMatchObject({
      command: 'rewind',
      roots: [made.root],
      applied: true,
      summary: { session: made.agent.session, checkpoint: made.second, changes: 2, insertions: 1, deletions: 3, skipped: 0, failed: 0, rolledBack: false, redoPoint: 1 },
      errors: [],
      exitCode: 0,
      extra: {
        changes: [
          { path: a, action: 'restore', insertions: 1, deletions: 1 },
          { path: fresh, action: 'delete', insertions: 0, deletions: 2 },
        ],
        skipped: [],
        failed: [],
      },
    })
    expect(report.extra).not.toHaveProperty('conversation')
    expect([read(made, 'a.txt'), existsSync(fresh), existsSync(join(made.project, 'sub'))]).toEqual(['ONE\ntwo\n', false, true])
    sameTree(join(made.root, 'projects'), transcript)
    expect(sessionsIn(made)).toEqual([made.agent.session])
  })

  it('names the checkpoint by id and time, for whoever logs it (R122)', async () => {
    const made = await life()
    const [K, time] = [uuidOf('k'), '2026-11-01T09:30:00.000Z']
    writeTranscript(made.root, '-p', S1, [userLine(K, { cwd: made.project, session: S1 }), snap(K, { 'a.txt': null }, time)])
    const report = await rewind(made.store, sessionOf(made.store, S1), K.slice(0, 8), { scope: 'code', newId: target }, contextOf(made))
    expect(report.summary).toMatchObject({ session: S1, checkpoint: K, time, changes: 0 })
  })

  it('a second run changes nothing and makes no redo point', async () => {
    const made = await threeMessages()
    await rewindTo(made, made.first, { scope: 'code' })
    const before = snapshotTree(made.home)
    const again = await rewindTo(made, made.first, { scope: 'code' })
    expect(again).toMatchObject({ summary: { changes: 0, insertions: 0, deletions: 0, redoPoint: null }, extra: { changes: [] }, exitCode: 0 })
    sameTree(made.home, before)
  })

  it.each([['absolute', (made: Life) => join(made.project, 'a.txt')], ['as recorded', () => 'a.txt'], ['from the start folder', () => 'sub/../a.txt']])(
    '--file limits it to one file, given %s',
    async (_, nameIn) => {
      const made = await threeMessages()
      const report = await rewindTo(made, made.second, { scope: 'code', files: [nameIn(made)] })
      expect(report).toMatchObject({ summary: { changes: 1, insertions: 1, deletions: 1 }, exitCode: 0 })
      expect([read(made, 'a.txt'), read(made, 'sub/new.txt')]).toEqual(['ONE\ntwo\n', 'n1\nn2\n'])
    },
  )

  it('--file with a file that nobody tracks is an error and nothing happens', async () => {
    const made = await threeMessages()
    const before = snapshotTree(made.home)
    await expect(rewindTo(made, made.second, { files: ['other.txt'] })).rejects.toThrow(NoMatchError)
    sameTree(made.home, before)
  })

  it('the diff shows what goes and what comes', async () => {
    const made = await threeMessages()
    const { extra } = await rewindTo(made, made.second, { scope: 'code', diff: true, apply: false })
    const diff = (extra?.diff as string).split('\n')
    expect(diff.filter((line) => /^[-+](?![-+])/.test(line))).toEqual(['-TWO', '+two', '-n1', '-n2'])
    expect(diff).toContain(`--- a${join(made.project, 'a.txt')}`)
    expect(diff).toContain('+++ /dev/null')
  })

  it('a binary file is said to be one, not counted', async () => {
    const made = await life()
    made.agent.external('b.bin', Buffer.from([0, 1, 2]))
    const first = made.agent.prompt('go')
    made.agent.write('b.bin', 'text\n')
    made.agent.end()
    expect((await rewindTo(made, first, { scope: 'code' })).extra?.changes).toEqual([
      { path: join(made.project, 'b.bin'), action: 'restore', insertions: 0, deletions: 0, binary: true },
    ])
    expect(readFileSync(join(made.project, 'b.bin'))).toEqual(Buffer.from([0, 1, 2]))
  })
})

describe('the message of a rewind', () => {
  it('may be a unique prefix', async () => {
    const made = await threeMessages()
    const report = await rewindTo(made, made.second.slice(0, 8))
    expect(report).toMatchObject({ summary: { checkpoint: made.second }, extra: { conversation: { message: made.second } }, exitCode: 0 })
  })

  it.each(['code', 'both', 'conversation'] as const)('a prefix of several is refused, with --scope %s', async (scope) => {
    const made = await life()
    const ids = ['aaaa0000-0000-4000-8000-000000000001', 'aaaa0000-0000-4000-8000-000000000002']
    writeTranscript(made.root, '-p', made.agent.session, ids.flatMap((id, index) => [
      userLine(id, { cwd: made.project, session: made.agent.session, parent: ids[index - 1] ?? null }),
      snap(id, { 'a.txt': null }),
    ]))
    writeFileSync(join(made.project, 'a.txt'), 'x')
    const before = snapshotTree(made.home)
    await expect(rewindTo(made, 'aaaa', { scope })).rejects.toThrow(/2 (checkpoints|messages) begin with aaaa/)
    sameTree(made.home, before)
  })

  it.each(['code', 'both', 'conversation'] as const)('that is none is an error with --scope %s', async (scope) => {
    const made = await threeMessages()
    const before = snapshotTree(made.home)
    await expect(rewindTo(made, uuidOf('nobody'), { scope })).rejects.toThrow(NoMatchError)
    sameTree(made.home, before)
  })

  it('without a checkpoint can be gone back to in the conversation only', async () => {
    const made = await life()
    const [bare, second] = [uuidOf('bare'), uuidOf('second')]
    const at = { cwd: made.project, session: S1 }
    writeTranscript(made.root, '-p', S1, [userLine(bare, at), snap(bare, { 'a.txt': null }), userLine(second, { ...at, parent: bare, text: 'again' })])
    const go = (scope: 'code' | 'both' | 'conversation'): ReturnType<typeof rewind> =>
      rewind(made.store, sessionOf(made.store, S1), second, { scope, newId: target, apply: true }, contextOf(made))
    await expect(go('code')).rejects.toThrow(/no checkpoint for message/)
    await expect(go('both')).rejects.toThrow(NoMatchError)
    expect(sessionsIn(made)).toEqual([S1])
    expect(await go('conversation')).toMatchObject({ applied: true, exitCode: 0, extra: { conversation: { session: target, message: second, prompt: 'again' } } })
  })
})

describe('rewind --scope conversation', () => {
  it('makes the new session and touches no file', async () => {
    const made = await threeMessages()
    const before = snapshotTree(made.project)
    const report = await rewindTo(made, made.third, { scope: 'conversation' })
    expect(report).toMatchObject({ applied: true, exitCode: 0, summary: { checkpoint: made.third, changes: 0 }, extra: { changes: [], conversation: { session: target, prompt: 'louder' } } })
    sameTree(made.project, before)
    expect(existsSync(join(made.store.sidecar, 'redo'))).toBe(false)
  })
})

describe('rewind --scope both', () => {
  it.each(generations)('%s: files and conversation go back; the new session verifies clean, the old one keeps its bytes', async (generation) => {
    const made = await threeMessages(generation)
    const { agent, store, root } = made
    const [transcript, backups] = [readFileSync(agent.transcript), withoutTimes(snapshotTree(agent.backups))]
    const wanted = resolved(store, agent.session)
    const report = await rewindTo(made, made.third)
    expect(report).toMatchObject({ applied: true, exitCode: 0, errors: [], summary: { changes: 1 }, extra: { conversation: { session: target, message: made.third, prompt: 'louder' } } })
    expect([read(made, 'a.txt'), read(made, 'sub/new.txt')]).toEqual(['ONE\ntwo\n', 'n1\nn2\n'])
    expect(readFileSync(agent.transcript)).toEqual(transcript)
    const links = Object.fromEntries(Object.entries(withoutTimes(snapshotTree(agent.backups))).map(([name, node]) => [name, { ...node, nlink: 0, inode: '' }]))
    expect(links).toEqual(Object.fromEntries(Object.entries(backups).map(([name, node]) => [name, { ...node, nlink: 0, inode: '' }])))
    expect(resolved(store, target)).toEqual({ [made.first]: wanted[made.first], [made.second]: wanted[made.second] })
    const verified = await verify([openStore(root)], {}, { now, machine, random: () => 0, threads: 0 })
    expect(verified.findings.filter(({ severity }) => severity === 'error' || severity === 'warn')).toEqual([])
    expect(remains(made)).toEqual([])
  })

  it('to the first message empties the conversation: no new session, only the prompt to send again', async () => {
    const made = await threeMessages()
    expect(await rewindTo(made, made.first)).toMatchObject({ applied: true, exitCode: 0, extra: { conversation: { session: null, prompt: 'make it loud' } } })
    expect(sessionsIn(made)).toEqual([made.agent.session])
    expect(read(made, 'a.txt')).toBe('one\ntwo\n')
  })

  it('redo gives the files back as they were, and there is nothing to undo then', async () => {
    const made = await threeMessages()
    const before = projectOf(made)
    await rewindTo(made, made.second)
    expect(projectOf(made)).not.toEqual(before)
    const report = redoIn(made)
    // The mirror of the rewind: TWO comes back for two, and the two lines of sub/new.txt.
    expect(report).toMatchObject({ command: 'redo', applied: true, exitCode: 0, summary: { changes: 2, insertions: 3, deletions: 1, checkpoint: null } })
    expect(projectOf(made)).toEqual(before)
    expect(() => redoIn(made)).toThrow(NoMatchError)
  })

  it('redo refuses once the session recorded a new edit, unless forced', async () => {
    const made = await life()
    const { agent } = made
    agent.external('a.txt', 'one\n')
    const first = agent.prompt('go')
    agent.write('a.txt', 'two\n')
    await rewindTo(made, first, { scope: 'code' })
    agent.clock.tick(60_000)
    agent.write('b.txt', 'b\n')
    agent.end()
    const before = snapshotTree(made.home)
    expect(() => redoIn(made)).toThrow(FenceError)
    sameTree(made.home, before)
    expect(redoIn(made, { apply: true, force: true })).toMatchObject({ exitCode: 0 })
    expect([read(made, 'a.txt'), read(made, 'b.txt')]).toEqual(['two\n', 'b\n'])
  })

  it('previewed writes nothing at all, not even our folder, and says what would be', async () => {
    const made = await threeMessages()
    const before = snapshotTree(made.home)
    const report = await rewindTo(made, made.second, { apply: false, diff: true })
    expect(report).toMatchObject({ applied: false, exitCode: 0, summary: { changes: 2, insertions: 1, deletions: 3 }, extra: { conversation: { session: null, message: made.second, prompt: 'make a list' } } })
    sameTree(made.home, before)
    expect(existsSync(made.store.sidecar)).toBe(false)
    await rewindTo(made, made.second, { scope: 'code' })
    const after = snapshotTree(made.home)
    expect(redoIn(made, {})).toMatchObject({ applied: false, summary: { changes: 2 } })
    sameTree(made.home, after)
  })
})

describe('half a rewind never happens', () => {
  it('a missing backup: nothing is written, exit 3, and the conversation is left alone', async () => {
    const made = await threeMessages()
    removeBackup(made.root, made.agent.session, made.agent.backupName('a.txt', 2))
    const before = snapshotTree(made.home)
    const report = await rewindTo(made, made.second)
    const path = join(made.project, 'a.txt')
    expect(report).toMatchObject({ applied: false, exitCode: 3, summary: { changes: 0, failed: 1 }, errors: [{ path }], extra: { failed: [{ path }], conversation: { session: null } } })
    sameTree(made.home, before)
    expect(await rewindTo(made, made.second, { apply: false })).toMatchObject({ exitCode: 3, extra: { failed: [{ path }] } })
  })

  it('--partial restores the rest, says what failed, and leaves the conversation alone', async () => {
    const made = await threeMessages()
    removeBackup(made.root, made.agent.session, made.agent.backupName('a.txt', 2))
    const report = await rewindTo(made, made.second, { partial: true })
    expect(report).toMatchObject({ applied: true, exitCode: 3, summary: { changes: 1, failed: 1, rolledBack: false, redoPoint: 1 } })
    expect([read(made, 'a.txt'), existsSync(join(made.project, 'sub/new.txt'))]).toEqual(['ONE\nTWO\n', false])
    expect(sessionsIn(made)).toEqual([made.agent.session])
  })

  it('a backup that is not what was sealed stops it', async () => {
    const made = await threeMessages()
    await seal(made.store)
    flipBit(made.root, made.agent.session, made.agent.backupName('a.txt', 2))
    const before = snapshotTree(made.home)
    expect(await rewindTo(made, made.second)).toMatchObject({ applied: false, exitCode: 3, extra: { failed: [{ path: join(made.project, 'a.txt') }] } })
    sameTree(made.home, before)
  })

  it('a folder that takes no file: the other files and the conversation stay as they were, exit 3', async (context) => {
    needs(context, 'unprivileged')
    const made = await life()
    const { agent, project, home } = made
    for (const path of ['a.txt', 'closed/b.txt']) agent.external(path, `${path} then\n`)
    agent.prompt('begin')
    const message = agent.prompt('go')
    for (const path of ['a.txt', 'closed/b.txt']) agent.write(path, `${path} now\n`)
    agent.end()
    agent.remove('closed/b.txt')
    chmodSync(join(project, 'closed'), 0o555)
    giveAway(home)
    const before = projectOf(made)
    const report = await asNobody(() => rewindTo(made, message))
    expect(report).toMatchObject({ applied: false, exitCode: 3, errors: [{ path: join(project, 'closed/b.txt') }], extra: { conversation: { session: null } } })
    expect(projectOf(made)).toEqual(before)
    expect([sessionsIn(made), remains(made)]).toEqual([[agent.session], []])
  })

  it('when the conversation cannot be made, the files are put back from the redo point', async () => {
    const made = await threeMessages()
    const before = projectOf(made)
    const link = (): never => {
      expect(projectOf(made)).not.toEqual(before)
      throw Object.assign(new Error('EIO: the disk is ill'), { code: 'EIO' })
    }
    await expect(rewindTo(made, made.second, {}, { acts: { link } })).rejects.toThrow('the disk is ill')
    expect(projectOf(made)).toEqual(before)
    expect([sessionsIn(made), remains(made)]).toEqual([[made.agent.session], []])
    expect(() => redoIn(made)).toThrow(NoMatchError)
  })

  it('an earlier redo point survives a rewind that was put back', async () => {
    const made = await threeMessages()
    const before = projectOf(made)
    await rewindTo(made, made.third, { scope: 'code' })
    const link = (): never => { throw Object.assign(new Error('EIO'), { code: 'EIO' }) }
    await expect(rewindTo(made, made.second, {}, { acts: { link } })).rejects.toThrow('EIO')
    redoIn(made)
    expect(projectOf(made)).toEqual(before)
  })

  it('pictures that cannot be written put the files back too', async () => {
    const made = await life()
    const [first, second] = [uuidOf('m1'), uuidOf('m2')]
    const at = { cwd: made.project, session: S1 }
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAEC' } }
    const line = JSON.parse(userLine(second, { ...at, parent: first })) as Record<string, unknown>
    const withPicture = JSON.stringify({ ...line, message: { role: 'user', content: [{ type: 'text', text: 'look' }, image] } })
    writeTranscript(made.root, '-p', S1, [userLine(first, at), snap(first), withPicture, snap(second, { 'a.txt': `${H}@v1` })])
    writeBackup(made.root, S1, `${H}@v1`, 'then\n')
    writeFileSync(join(made.project, 'a.txt'), 'now\n')
    const imagesFolder = join(made.home, 'pictures')
    mkdirSync(imagesFolder)
    writeFileSync(join(imagesFolder, `${second}-1.png`), 'mine')
    const go = (): ReturnType<typeof rewind> =>
      rewind(made.store, sessionOf(made.store, S1), second, { scope: 'both', newId: target, apply: true, imagesFolder }, contextOf(made))
    await expect(go()).rejects.toMatchObject({ exitCode: 2 })
    expect([read(made, 'a.txt'), sessionsIn(made)]).toEqual(['now\n', [S1]])
    rmSync(imagesFolder, { recursive: true })
    expect(await go()).toMatchObject({ exitCode: 0, extra: { conversation: { images: 1, imagePaths: [join(imagesFolder, `${second}-1.png`)] } } })
    expect(readFileSync(join(imagesFolder, `${second}-1.png`))).toEqual(Buffer.from([0, 1, 2]))
    expect(read(made, 'a.txt')).toBe('then\n')
  })

  it('a backup that only the kept part of the conversation lacks is named, exit 3', async () => {
    const made = await threeMessages()
    removeBackup(made.root, made.agent.session, made.agent.backupName('a.txt', 1))
    const report = await rewindTo(made, made.third)
    expect(report).toMatchObject({ applied: true, exitCode: 3, extra: { conversation: { session: target } } })
    expect(report.errors.map(({ path }) => path).join()).toContain(made.agent.backupName('a.txt', 1))
    expect(read(made, 'a.txt')).toBe('ONE\ntwo\n')
  })
})

describe('on stores of the real client', () => {
  it.each(['2.0.64', '2.1.112', '2.1.332'])('%s, basic: every message of both goes where the client went, and the new session resolves alike', async (version) => {
    const { oracle } = await extractStore(version, 'basic')
    for (const { message, session, changed } of oracle?.targets ?? []) {
      const { root, tree } = await extractStore(version, 'basic')
      const store = openStore(root)
      const before = withoutTimes(snapshotTree(tree))
      const wanted = resolved(store, session)
      const context = { now, pid: process.pid, token: 'c0ffee', processExists: () => true, home: tree, windows: false }
      const report = await rewind(store, sessionOf(store, session), message, { scope: 'both', apply: true, newId: target }, context)
      expect([report.exitCode, report.errors]).toEqual([0, []])
      for (const [path, node] of Object.entries(changed)) {
        const now = snapshotTree(tree)[path]
        if (node === null) expect(now, path).toBeUndefined()
        else expect(now, path).toMatchObject({ type: node.type, mode: node.mode, sha256: node.sha256 })
      }
      const made = (report.extra?.conversation as { session: string | null }).session
      if (made !== null) for (const [checkpoint, files] of Object.entries(resolved(store, made))) {
        for (const [path, state] of Object.entries(files)) expect(state, path).toBe(wanted[checkpoint]?.[path])
      }
      if (Object.keys(changed).length > 0) redo(store, sessionOf(store, session), { apply: true }, context)
      expect(withoutTimes(snapshotTree(tree))).toEqual(before)
    }
  })
})
