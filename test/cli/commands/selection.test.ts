import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { corpusStores, extractStore } from '../../helpers/corpus.js'
import { S1, S2, emptyRoot, setTime, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { cliIn, notes, oldTime } from '../world.js'

const everyReader = [['status'], ['list'], ['verify'], ['doctor']] as const
const everyRemover = [['cap'], ['expire'], ['purge', '/home/u/notes'], ['trash', 'list'], ['trash', 'empty'], ['run', 'nightly']] as const

describe('--root', () => {
  it('may be given again: every store is worked on, each once whatever its spelling', async () => {
    const [one, two] = [await notes(), await notes()]
    const link = join(await temporaryFolder(), 'link')
    symlinkSync(two.root, link)
    for (const argv of [...everyReader, ...everyRemover]) {
      const both = await one.cli.json(...argv, '--root', one.root, '--root', two.root, '--root', `${one.root}/`, '--root', link)
      expect([argv, both.root]).toEqual([argv, [one.root, two.root]])
    }
    const { summary, sessions } = await one.cli.json('list', '--root', one.root, '--root', two.root)
    expect(summary).toMatchObject({ sessions: 4, bytes: 58 })
    expect(sessions).toHaveLength(4)
  })

  it('with several stores plans and applies for each, and says so', async () => {
    const [one, two] = [await notes(), await notes()]
    const report = await one.cli.json('expire', '--apply', '--root', one.root, '--root', two.root)
    expect(report.plan).toHaveLength(2)
    expect(report.summary.stores).toMatchObject([{ root: one.root, actions: 1 }, { root: two.root, actions: 1 }])
    for (const store of [one, two]) expect((await store.cli.json('trash', 'list', '--root', store.root)).summary).toMatchObject({ entries: 1 })
  })

  it('left out means every store that is found: here the one in the home folder', async () => {
    const { cli, root } = await notes()
    for (const argv of everyReader) expect((await cli.json(...argv)).root).toBe(root)
  })

  it('left out, the roots of the configuration come before those that are found', async () => {
    const [one, two] = [await notes(), await notes()]
    writeStoreFile(one.home, '.config/rewind-admin/rewind-admin.config.json', JSON.stringify({ roots: [two.root] }))
    expect((await one.cli.json('list')).root).toBe(two.root)
    expect((await one.cli.json('list', '--root', one.root)).root).toBe(one.root)
  })

  it.each([...everyReader.filter(([name]) => name !== 'doctor'), ...everyRemover].map((argv) => [argv.join(' '), argv] as const))(
    '%s where there is no store ends with 10 and says what was looked for and how to name one',
    async (_, argv) => {
      const home = await temporaryFolder()
      const { exitCode, stdout, stderr } = await cliIn(home)(...argv)
      expect([exitCode, stdout]).toEqual([10, ''])
      expect(stderr).toContain(`looked for ${home}/.claude (claude-code: it does not exist)`)
      expect(stderr).toContain('--root <dir>')
    },
  )

  it('doctor where there is no store still reports the environment, and ends with 10', async () => {
    const { exitCode, stdout } = await cliIn(await temporaryFolder())('doctor')
    expect(exitCode).toBe(10)
    expect(stdout).toContain(process.version)
    expect(stdout).toMatch(/stores +0/)
  })

  it('that is no folder, or no store, ends with 10 and names it', async () => {
    const { home, cli } = await notes()
    mkdirSync(join(home, 'photos'))
    for (const [root, words] of [['none', 'it does not exist'], ['photos', 'is not a store of claude-code']] as const) {
      const { exitCode, stderr } = await cli('status', '--root', join(home, root))
      expect(exitCode).toBe(10)
      expect(stderr).toContain(join(home, root))
      expect(stderr).toContain(words)
    }
  })

  it.each([['verify'], ['cap'], ['expire'], ['run nightly']])('R18: %s of a store in which nothing is recognised ends with 10', async (words) => {
    const root = await emptyRoot()
    writeStoreFile(root, `projects/-p/${S1}.jsonl.zst`, 'x', { mtime: oldTime })
    const { exitCode, errors } = await cliIn(dirname(root)).json(...words.split(' '), '--root', root)
    expect(exitCode).toBe(10)
    expect(errors[0]).toMatchObject({ code: 'NO_STORE', message: expect.stringContaining('is recognised') as string })
  })

  it('of an empty store is no error', async () => {
    const root = await emptyRoot()
    for (const argv of [...everyReader, ['cap'], ['expire'], ['run', 'nightly']]) {
      expect([argv, (await cliIn(dirname(root)).json(...argv, '--root', root)).exitCode]).toEqual([argv, 0])
    }
  })
})

describe('a session id', () => {
  it('may be a unique prefix, and is text also when it looks like a number', async () => {
    const { root, cli } = await notes()
    const number = '1e500000-0000-4000-8000-000000000000'
    writeTranscript(root, '-home-u-notes', number, [userLine('m', { session: number, cwd: '/home/u/notes', time: oldTime })], { mtime: oldTime })
    expect((await cli.json('show', '1e5', '--root', root)).summary).toMatchObject({ session: number })
    expect((await cli.json('status', '1e5', '--root', root)).summary).toMatchObject({ session: number })
    expect((await cli.json('verify', '1e5', '--root', root)).summary).toMatchObject({ sessions: 1 })
    expect((await cli.json('cap', '--session', '1e5', '--root', root)).summary).toMatchObject({ sessions: 1 })
    expect((await cli.json('verify', '1e5', '2222', '--root', root)).summary).toMatchObject({ sessions: 2 })
    expect((await cli.json('show', S1, '--root', root)).summary).toMatchObject({ session: S1 })
  })

  it.each([['show'], ['status'], ['verify'], ['cap --session']])('given to %s as a prefix of several ends with 2 and names some of them', async (words) => {
    const { root, cli } = await notes()
    const other = '11112222-1111-4111-8111-111111111111'
    writeTranscript(root, '-home-u-notes', other, [userLine('m', { session: other, time: oldTime })], { mtime: oldTime })
    const { exitCode, stdout, stderr } = await cli(...words.split(' '), '1111', '--root', root)
    expect([exitCode, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`2 sessions begin with 1111: ${S1}, ${other}`)
  })

  it.each([['show'], ['status'], ['verify'], ['cap --session']])('that nothing begins with, given to %s, ends with 1 and says what lists them', async (words) => {
    const { root, cli } = await notes()
    const { exitCode, stdout, stderr } = await cli(...words.split(' '), 'ffff', '--root', root)
    expect([exitCode, stdout]).toEqual([1, ''])
    expect(stderr).toContain('no session begins with ffff')
    expect(stderr).toContain('rewind-admin list')
  })

  it('is looked for in every store', async () => {
    const [one, two] = [await notes(), await emptyRoot()]
    expect((await one.cli.json('show', '2222', '--root', two, '--root', one.root)).summary).toMatchObject({ session: S2 })
    expect((await one.cli.json('status', '2222', '--root', two, '--root', one.root)).exitCode).toBe(0)
    expect((await one.cli.json('verify', '2222', '--root', two, '--root', one.root)).summary).toMatchObject({ sessions: 1 })
    expect((await one.cli.json('cap', '--session', '2222', '--root', two, '--root', one.root)).exitCode).toBe(0)
  })
})

describe('a project', () => {
  it.each([['list --project'], ['cap --project'], ['purge']])('in which no session was started, given to %s, ends with 1', async (words) => {
    const { root, cli } = await notes()
    const { exitCode, errors } = await cli.json(...words.split(' '), '/home/u/other', '--root', root)
    expect([exitCode, errors[0]?.code]).toEqual([1, 'NO_MATCH'])
  })

  it('in which no session was started, given to verify, ends with 1: nothing was looked at', async () => {
    const { root, cli } = await notes()
    expect(await cli.json('verify', '--project', '/home/u/other', '--root', root)).toMatchObject({ exitCode: 1, errors: [{ code: 'NO_MATCH' }] })
    expect((await cli.json('verify', '--project', '/home/u/notes', '--root', root)).summary).toMatchObject({ sessions: 2 })
  })

  it('may be relative to the working folder, or begin with ~/', async () => {
    const root = await emptyRoot()
    const home = dirname(root)
    const project = join(home, 'notes')
    mkdirSync(project)
    writeTranscript(root, '-notes', S1, [userLine('m', { session: S1, cwd: project, time: oldTime })], { mtime: oldTime })
    for (const [cwd, given] of [[project, '.'], [home, 'notes'], [home, './notes/'], ['/', project]] as const) {
      for (const words of ['list --project', 'verify --project', 'cap --project', 'purge']) {
        const { exitCode, summary } = await cliIn(home, { cwd }).json(...words.split(' '), given, '--root', root)
        expect([words, given, exitCode, summary.sessions]).toEqual([words, given, 0, 1])
      }
    }
    for (const words of ['list', 'verify', 'cap']) expect((await cliIn(home, { cwd: '/' }).json(words, '--project=~/notes', '--root', root)).exitCode).toBe(0)
  })

  it('with the same folder in several stores is found in all of them, and its absence in some is no error', async () => {
    const [one, two] = [await notes(), await emptyRoot()]
    for (const words of ['list --project', 'verify --project', 'cap --project', 'purge']) {
      const { exitCode } = await one.cli.json(...words.split(' '), '/home/u/notes', '--root', two, '--root', one.root)
      expect([words, exitCode]).toEqual([words, 0])
    }
  })
})

describe('the corpus', () => {
  const scenarios = corpusStores('claude-code').filter(({ version, scenario }) => ['basic', 'fork', 'mixed', 'rewound', 'tui', 'cap2'].includes(scenario) || version === '1.0.128')

  it.each(scenarios.map(({ version, scenario }) => [version, scenario]))('%s/%s: status, list, show and verify agree on what is there', async (version, scenario) => {
    const { home, root } = await extractStore(version, scenario)
    setTime(join(root, 'projects'), oldTime)
    const cli = cliIn(home)
    const status = await cli.json('status', '--root', root)
    const list = await cli.json('list', '--root', root)
    const verify = await cli.json('verify', '--root', root)
    expect([status.exitCode, list.exitCode]).toEqual([0, 0])
    const { sessions, checkpoints, backups, bytes } = status.summary
    expect(list.summary).toMatchObject({ sessions, bytes })
    expect(verify.summary).toMatchObject({ checkpoints, backups, bytes })
    let shown = 0
    for (const { id, checkpoints: count } of list.sessions as { id: string; checkpoints: number }[]) {
      const show = await cli.json('show', id, '--root', root)
      expect(show.checkpoints).toHaveLength(count)
      shown += count
    }
    expect(shown).toBe(checkpoints)
    expect(Number(sessions)).toBeGreaterThan(0)
  })
})
