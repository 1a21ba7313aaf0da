import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { uuidOf } from '../../helpers/identity.js'
import { S1, S2, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { agentsView, notes, oldTime } from '../world.js'

describe('purge --apply', () => {
  it('R30: after it no path with the ids of the project is left, and another project is as it was', async () => {
    const { root, cli } = await notes()
    const other = '33333333-3333-4333-8333-333333333333'
    writeTranscript(root, '-home-u-notes', other, [userLine('m', { session: other, cwd: '/home/u.notes', time: oldTime })], { mtime: oldTime })
    const report = await cli.json('purge', '/home/u/notes', '--apply', '--removed-out', 'gone', '--root', root)
    expect(report).toMatchObject({ exitCode: 0, applied: true, errors: [] })
    const left = Object.keys(agentsView(root)).filter((path) => path.includes(S1) || path.includes(S2))
    expect(left).toEqual([])
    expect((await cli.json('list', '--root', root)).sessions).toMatchObject([{ id: other }])
    expect(readFileSync(join(cli.home, 'gone'), 'utf8').trim().split('\n').sort()).toEqual([S1, S2])
  })

  it.each([['/'], ['~'], ['.'], ['..'], ['.claude'], ['.claude/projects/../..']])('refuses %s with 2: a root, the home, or what holds the store', async (given) => {
    const { home, root, cli } = await notes()
    const before = agentsView(root)
    const { exitCode, stderr } = await cli('purge', given === '~' ? home : given, '--apply', '--root', root)
    expect(exitCode).toBe(2)
    expect(stderr).toContain('purge refuses')
    expect(agentsView(root)).toEqual(before)
  })

  it('R91: takes the projects that a report found gone, a hundred of them, and leaves the others', async () => {
    const { home, root, cli } = await notes()
    const gone = Array.from({ length: 100 }, (_, index) => `${home}/run-${String(index)}`)
    for (const [index, cwd] of gone.entries()) {
      const id = uuidOf(`gone/${String(index)}`)
      writeTranscript(root, `-run-${String(index)}`, id, [userLine('m', { session: id, cwd, time: oldTime })], { mtime: oldTime })
    }
    writeFileSync(join(home, 'report.json'), (await cli('report', '--json', '--root', root)).stdout)
    const preview = await cli.json('purge', '--projects-from', 'report.json', '--root', root)
    expect(preview).toMatchObject({ exitCode: 4, applied: false, errors: [{ code: 'BRAKE' }] })
    expect(preview.plan).toHaveLength(100)
    const report = await cli.json('purge', '--projects-from', 'report.json', '--max-delete', '100', '--apply', '--root', root)
    expect([report.exitCode, report.plan.length]).toEqual([0, 100])
    expect(((await cli.json('list', '--root', root)).sessions as { id: string }[]).map(({ id }) => id)).toEqual([S1, S2])
  })

  it('takes the projects of a list, and refuses all of it when one of them is no project', async () => {
    const { home, root, cli } = await notes()
    const list = (text: string): void => { writeFileSync(join(home, 'list'), text) }
    list('\uFEFF# what is over\r\n\r\n/home/u/notes\r\n/home/u/notes\n/home/u/never\n')
    expect((await cli.json('purge', '--projects-from', 'list', '--root', root)).plan.map(({ session }) => session).sort()).toEqual([S1, S2])
    const before = agentsView(root)
    list(`/home/u/notes\n${home}\n`)
    const { exitCode, stderr } = await cli('purge', '--projects-from', 'list', '--apply', '--root', root)
    expect([exitCode, stderr.includes('it is your home folder')]).toEqual([2, true])
    for (const text of ['# nothing\n', '{', '{"command":"verify"}', '{"command":"report","stores":[]}']) {
      list(text)
      expect([text, (await cli('purge', '--projects-from', 'list', '--apply', '--root', root)).exitCode]).toEqual([text, 2])
    }
    expect((await cli('purge', '--projects-from', 'none', '--root', root)).exitCode).toBe(2)
    expect((await cli('purge', '--apply', '--root', root)).exitCode).toBe(2)
    expect(agentsView(root)).toEqual(before)
  })

  it('R32: shared files keep their bytes unless --shared says otherwise', async () => {
    const { home, root, cli } = await notes()
    const history = '{"display":"x","project":"/home/u/notes"}\n{"display":"y","project":"/home/u/other"}\n'
    writeStoreFile(root, 'history.jsonl', history)
    writeFileSync(join(home, '.claude.json'), '{"projects":{"/home/u/notes":{},"/home/u/other":{}}}')
    const plain = await cli.json('purge', '/home/u/notes', '--root', root)
    expect(plain.summary.shared).toHaveLength(2)
    await cli('purge', '/home/u/notes', '--apply', '--root', root)
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe(history)
    const { exitCode } = await cli('purge', '/home/u/notes', '--shared', '--apply', '--root', root)
    expect(exitCode).toBe(0)
    expect(readFileSync(join(root, 'history.jsonl'), 'utf8')).toBe('{"display":"y","project":"/home/u/other"}\n')
    expect(JSON.parse(readFileSync(join(home, '.claude.json'), 'utf8'))).toEqual({ projects: { '/home/u/other': {} } })
  })
})
