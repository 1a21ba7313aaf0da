import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NoStoreError, UsageError } from '../../../src/model/errors.js'
import { fleetRoots } from '../../../src/operations/fleet/roots.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { asNobody, giveAway, needs } from '../../helpers/unprivileged.js'

/** A folder with homes in it, each with the folders that are named. */
async function homes(folders: Readonly<Record<string, readonly string[]>>): Promise<string> {
  const base = await temporaryFolder()
  for (const [home, names] of Object.entries(folders)) {
    for (const name of ['', ...names]) mkdirSync(join(base, home, name), { recursive: true })
  }
  return base
}

function paths(from: string, base: string): string[] {
  return fleetRoots(from, base).map(({ path, problem }) => `${path.slice(base.length + 1)}${problem === undefined ? '' : ` ${problem.code}`}`)
}

describe('the lines of a file', () => {
  it('are roots, sorted, each once; comments, blanks and a BOM count for nothing', async () => {
    const base = await temporaryFolder()
    const file = join(base, 'homes.txt')
    writeFileSync(file, `\uFEFF# all of us\n/home/b/.claude\r\n\n  /home/a/.claude   # Ada\n/home/b/.claude/\nrelative/.claude\n/home/c#1/.claude\n`)
    expect(fleetRoots('homes.txt', base)).toEqual(
      ['/home/a/.claude', '/home/b/.claude', '/home/c#1/.claude', join(base, 'relative/.claude')].sort().map((path) => ({ path, named: true })),
    )
  })

  it('that name nothing, and a file that is not there, are errors', async () => {
    const base = await temporaryFolder()
    writeFileSync(join(base, 'empty'), '# nobody\n')
    expect(() => fleetRoots('empty', base)).toThrow(NoStoreError)
    expect(() => fleetRoots('none', base)).toThrow(UsageError)
    expect(() => fleetRoots('.', base)).toThrow('it is a folder')
  })
})

describe('a pattern', () => {
  it('finds folders in its order of names; a home without the folder is none, a dot has to be written', async () => {
    const base = await homes({ ben: ['.claude'], ada: ['.claude', 'x'], cem: [], '.hidden': ['.claude'] })
    writeFileSync(join(base, 'file'), '')
    expect(paths(`${base}/*/.claude`, base)).toEqual(['ada/.claude', 'ben/.claude'])
    expect(paths('*/.claude', base)).toEqual(['ada/.claude', 'ben/.claude'])
    expect(paths('.*/.claude', base)).toEqual(['.hidden/.claude'])
    expect(paths('*/.cl*', base)).toEqual(['ada/.claude', 'ben/.claude'])
  })

  it.each([
    ['a?a/.claude', ['ada/.claude']],
    ['[ab]*/.claude', ['ada/.claude', 'ben/.claude', 'b.x/.claude', 'a]b/.claude'].sort()],
    ['[!a]*/.claude', ['b.x/.claude', 'ben/.claude']],
    ['b.?/.claude', ['b.x/.claude']],
    ['a]*/.claude', ['a]b/.claude']],
  ])('%s finds %j', async (pattern, found) => {
    const base = await homes({ ada: ['.claude'], ben: ['.claude'], 'b.x': ['.claude'], 'a]b': ['.claude'] })
    expect(paths(pattern, base)).toEqual(found)
  })

  it('that finds nothing, or is none, is an error', async () => {
    const base = await homes({ ada: [] })
    expect(() => fleetRoots('*/.claude', base)).toThrow(NoStoreError)
    expect(() => fleetRoots('none/*/.claude', base)).toThrow(NoStoreError)
    expect(() => fleetRoots('[z-a]/.claude', base)).toThrow(UsageError)
  })

  it('names what cannot be looked at instead of passing over it', async (context) => {
    needs(context, 'unprivileged')
    const base = await homes({ ada: ['.claude'], ben: ['.claude'] })
    chmodSync(join(base, 'ben'), 0o000)
    giveAway(base)
    await asNobody(() => {
      expect(paths('*/.claude', base)).toEqual(['ada/.claude', 'ben/.claude EACCES'])
    })
  })

  it('R55: follows no link that another user made on the way, and says so; one of root or of our own it does', async (context) => {
    needs(context, 'unprivileged')
    const base = await homes({ 'real/ada': ['.claude'], homes: [] })
    symlinkSync(join(base, 'real/ada'), join(base, 'homes/ada'))
    expect(paths('homes/*/.claude', base)).toEqual(['homes/ada/.claude'])
    giveAway(join(base, 'homes'))
    const found = paths('homes/*/.claude', base)
    expect(found).toEqual(process.getuid?.() === 0 ? ['homes/ada FENCE'] : ['homes/ada/.claude'])
  })
})
