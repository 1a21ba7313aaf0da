import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { cutToZero, flipBit, makeOrphanFolder, removeBackup } from '../../helpers/damage.js'
import { extractStore } from '../../helpers/corpus.js'
import { S1, S2, emptyRoot, userLine, writeStoreFile, writeTranscript } from '../../helpers/store.js'
import { snapshotTree } from '../../helpers/tree.js'
import { sarifProblems } from '../reporters/sarif-schema.js'
import { parseXml } from '../reporters/xml.js'
import { cliIn, hashA, notes, oldTime, type Envelope, type Notes } from '../world.js'

const S9 = '99999999-9999-4999-8999-999999999999'

/** One error (a backup is gone) and one warning (backups of no session). */
async function damaged(): Promise<Notes> {
  const store = await notes()
  removeBackup(store.root, S1, `${hashA}@v2`)
  makeOrphanFolder(store.root, S9, 'aaaaaaaaaaaaaaaa@v1', { mtime: Date.parse(oldTime) })
  return store
}

function idsOf({ findings }: Envelope): string[] {
  return findings.map(({ id }) => String(id)).sort()
}

describe('verify', () => {
  it('of a good store ends with 0 and one line of what was looked at', async () => {
    const { root, cli } = await notes()
    const { exitCode, stdout, stderr } = await cli('verify', '--root', root)
    expect([exitCode, stderr]).toEqual([0, ''])
    expect(stdout).toBe('2 sessions, 4 checkpoints, 4 backups (29 B)\n4 read, 0 sealed, 0 proven by the transcript\n0 errors, 0 warnings, 0 for information\n')
  })

  it('of a damaged one ends with 1; the last line is the command that repairs, for the same store', async () => {
    const { root, cli } = await damaged()
    const { exitCode, stdout } = await cli('verify', '--root', root)
    expect(exitCode).toBe(1)
    expect(stdout).toMatch(new RegExp(`session ${S1}\n  error  missing-backup: .*\n +at file-history/${S1}/${hashA}@v2`))
    expect(stdout.trimEnd().split('\n').at(-1)).toBe(`rewind-admin repair --root '${root}'`)
  })

  it('takes several sessions, and looks at no other', async () => {
    const { root, cli } = await damaged()
    expect(await cli.json('verify', S2, '--root', root)).toMatchObject({ exitCode: 0, summary: { sessions: 1 }, findings: [] })
    expect(idsOf(await cli.json('verify', '1111', '2222', '--root', root))).toEqual(['missing-backup'])
  })

  it('of several stores verifies the others when one cannot be recognised, and ends with its code', async () => {
    const [{ root, cli }, broken] = [await damaged(), await emptyRoot()]
    writeStoreFile(broken, `projects/-p/${S1}.jsonl.zst`, 'x')
    const report = await cli.json('verify', '--root', broken, '--root', root)
    expect(report).toMatchObject({ exitCode: 10, errors: [{ code: 'NO_STORE', path: broken }], summary: { sessions: 3 } })
    expect(idsOf(report)).toEqual(['missing-backup', 'orphan-backups'])
  })

  it.each([
    ['error', 1],
    ['warn', 1],
    ['info', 1],
  ] as const)('--fail-on %s with an error ends with %i', async (floor, code) => {
    const { root, cli } = await damaged()
    expect((await cli('verify', '--fail-on', floor, '--root', root)).exitCode).toBe(code)
  })

  it.each([
    ['error', 0],
    ['warn', 1],
    ['info', 1],
  ] as const)('--fail-on %s with a warning only ends with %i', async (floor, code) => {
    const { root, cli } = await notes()
    makeOrphanFolder(root, S9, 'aaaaaaaaaaaaaaaa@v1', { mtime: Date.parse(oldTime) })
    expect((await cli('verify', '--fail-on', floor, '--root', root)).exitCode).toBe(code)
  })

  it('--severity makes a finding weigh more, less or nothing', async () => {
    const { root, cli } = await damaged()
    const quiet = await cli.json('verify', '--severity', 'missing-backup=info', '--severity', 'orphan-backups=ignore', '--root', root)
    expect(quiet).toMatchObject({ exitCode: 0, findings: [{ id: 'missing-backup', severity: 'info' }], summary: { errors: 0, warnings: 0, information: 1 } })
    const loud = await cli.json('verify', '--severity', 'orphan-backups=error', '--root', root)
    expect(loud.summary).toMatchObject({ errors: 2, warnings: 0 })
  })

  it.each([
    [['--severity', 'missing-backups=info'], 'there is no finding called missing-backups'],
    [['--severity', 'missing-backup=fatal'], 'error, warn, info, ignore'],
    [['--severity', 'missing-backup'], 'error, warn, info, ignore'],
    [['--severity', 'toString=info'], 'there is no finding called toString'],
    [['--max-errors', '0'], '--max-errors must be a whole number above 0'],
    [['--max-errors', '1.5'], '--max-errors must be a whole number above 0'],
    [['--sample', 'some'], 'some'],
    [['--baseline', 'none.json'], 'none.json cannot be read'],
    [['--format', 'xml'], 'format cannot be "xml"'],
    [['--format', 'text', '--json'], '--json and --format text'],
  ])('%j ends with 2 and says why', async (argv, words) => {
    const { root, cli } = await notes()
    const { exitCode, stderr } = await cli('verify', ...argv, '--root', root)
    expect(exitCode).toBe(2)
    expect(stderr).toContain(words)
  })

  it.each([['json'], ['ndjson']])('--baseline accepts what its own --format %s report holds, and nothing new', async (format) => {
    const { home, root, cli } = await damaged()
    const before = await cli('verify', '--format', format, '--root', root)
    expect(before.exitCode).toBe(1)
    writeFileSync(join(home, 'baseline'), before.stdout)
    const same = await cli.json('verify', '--baseline', 'baseline', '--root', root)
    expect(same).toMatchObject({ exitCode: 0, findings: [], summary: { errors: 0, warnings: 0, accepted: 2 } })
    cutToZero(root, S2, `${hashA}@v1`)
    removeBackup(root, S1, `${hashA}@v1`)
    const more = await cli.json('verify', '--baseline', join(home, 'baseline'), '--root', root)
    expect(more).toMatchObject({ exitCode: 1, findings: [{ id: 'missing-backup', place: `file-history/${S1}/${hashA}@v1` }], summary: { accepted: 2 } })
  })

  it('--baseline that is not JSON, or holds no findings, ends with 2', async () => {
    const { home, root, cli } = await notes()
    for (const text of ['{"findings": 3}', 'not json', '{"a":1']) {
      writeFileSync(join(home, 'baseline'), text)
      expect([text, (await cli('verify', '--baseline', 'baseline', '--root', root)).exitCode]).toEqual([text, 2])
    }
  })

  it('--max-errors stops early and says that not everything was looked at', async () => {
    const { root, cli } = await damaged()
    removeBackup(root, S2, `${hashA}@v1`)
    const { stdout } = await cli('verify', '--max-errors', '1', '--root', root)
    expect(stdout).toContain('Stopped early: not everything was looked at.')
    expect((await cli.json('verify', '--max-errors', '1', '--root', root)).summary).toMatchObject({ complete: false })
  })

  it('R120: a session without checkpoints is no damage unless they are required', async () => {
    const { root, cli } = await notes()
    writeTranscript(root, '-home-u-notes', S9, [userLine('m', { session: S9, time: oldTime })], { mtime: oldTime })
    expect(await cli.json('verify', '--root', root)).toMatchObject({ exitCode: 0, findings: [{ id: 'no-checkpoints', severity: 'info', session: S9 }] })
    expect(await cli.json('verify', '--require-checkpoints', '--root', root)).toMatchObject({ exitCode: 1, findings: [{ id: 'no-checkpoints', severity: 'error' }] })
  })

  it('R47: --seal remembers digests in our own folder and touches nothing else; then a flipped bit is found, also by --quick of a changed file', async () => {
    const { root, cli } = await notes()
    const before = snapshotTree(join(root, 'file-history'))
    expect((await cli('verify', '--seal', '--root', root)).exitCode).toBe(0)
    expect(snapshotTree(join(root, 'file-history'))).toEqual(before)
    expect((await cli.json('verify', '--root', root)).summary).toMatchObject({ sealed: 4 })
    expect((await cli.json('verify', '--quick', '--root', root)).summary).toMatchObject({ digested: 0, unchanged: 2 })
    flipBit(root, S1, `${hashA}@v1`)
    expect(await cli.json('verify', '--root', root)).toMatchObject({ exitCode: 1, findings: [{ id: 'changed-after-seal', place: `file-history/${S1}/${hashA}@v1` }] })
  })

  it('R47: a bit flipped before anything was sealed is found where the transcript proves the content', async () => {
    const { root, home } = await extractStore('2.1.332', 'basic')
    const cli = cliIn(home)
    const [session] = (await cli.json('list', '--root', root)).sessions as [{ id: string }]
    const { checkpoints } = await cli.json('show', session.id, '--root', root)
    const first = (checkpoints as { files: { state: string; backup: string }[] }[]).flatMap(({ files }) => files).find(({ state }) => state === 'present')
    flipBit(root, session.id, first?.backup ?? '')
    const report = await cli.json('verify', '--root', root)
    expect([report.exitCode, idsOf(report)]).toEqual([1, expect.arrayContaining(['contradicts-transcript'])])
  })
})

describe('verify --format', () => {
  it('json is the same as --json', async () => {
    const { root, cli } = await damaged()
    const named = JSON.parse((await cli('verify', '--format', 'json', '--root', root)).stdout) as Envelope
    const short = await cli.json('verify', '--root', root)
    expect({ ...named, durationMs: 0 }).toEqual({ ...short, durationMs: 0 })
  })

  it('ndjson is one finding a line', async () => {
    const { root, cli } = await damaged()
    const { stdout } = await cli('verify', '--format', 'ndjson', '--root', root)
    const rows = stdout.trimEnd().split('\n').map((line) => JSON.parse(line) as { id?: string })
    expect(rows.map(({ id }) => id).filter(Boolean).sort()).toEqual(['missing-backup', 'orphan-backups'])
  })

  it('sarif is a SARIF 2.1.0 log with a result for each finding', async () => {
    const { root, cli } = await damaged()
    const { exitCode, stdout } = await cli('verify', '--format', 'sarif', '--root', root)
    expect(exitCode).toBe(1)
    const log = JSON.parse(stdout) as { version: string; runs: [{ results: { ruleId: string; level: string }[] }] }
    expect(sarifProblems(log)).toEqual([])
    expect(log.version).toBe('2.1.0')
    expect(log.runs[0].results.map(({ ruleId, level }) => [ruleId, level]).sort()).toEqual([['missing-backup', 'error'], ['orphan-backups', 'warning']])
  })

  it('junit is well-formed and counts the failures', async () => {
    const { root, cli } = await damaged()
    const { stdout } = await cli('verify', '--format', 'junit', '--root', root)
    expect(() => parseXml(stdout)).not.toThrow()
    expect(stdout).toContain('missing-backup')
    expect(stdout).toMatch(/failures="[1-9]/)
  })

  it('github annotates', async () => {
    const { root, cli } = await damaged()
    const { stdout } = await cli('verify', '--format', 'github', '--root', root)
    expect(stdout).toMatch(/^::error .*title=.*missing-backup/m)
    expect(stdout).toMatch(/^::warning .*orphan-backups/m)
  })

  it.each([['sarif'], ['junit'], ['github'], ['ndjson'], ['json']])('%s of a run that fails says so in that format too', async (format) => {
    const { root, cli } = await notes()
    const { exitCode, stdout } = await cli('verify', 'ffff', '--format', format, '--root', root)
    expect(exitCode).toBe(1)
    expect(stdout).toContain('no session begins with ffff')
  })
})

