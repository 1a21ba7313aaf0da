import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { FormatId } from '../../src/model/session.js'
import { expandHome, findRoots } from '../../src/settings/roots.js'
import { temporaryFolder } from '../helpers/temp.js'

interface FakeFormat {
  readonly id: FormatId
  places(around: { home: string }): string[]
  detect(root: string): boolean
}

/** A format whose stores hold a file named after it and stand in `<home>/<id>`. */
function format(id: FormatId): FakeFormat {
  return { id, places: ({ home }) => [join(home, id), join(home, `${id}-second`)], detect: (root) => existsSync(join(root, `${id}.mark`)) }
}

const formats = [format('claude-code'), format('qwen-code')]

function store(path: string, ...ids: FormatId[]): string {
  mkdirSync(path, { recursive: true })
  for (const id of ids) writeFileSync(join(path, `${id}.mark`), '')
  return path
}

function found(home: string, roots: string[] = [], wanted?: FormatId): [string, string][] {
  return findRoots(formats, { home, env: {} }, { roots, store: wanted }).map((one) => [one.format.id, one.root])
}

describe('findRoots with none given', () => {
  it('finds every store in the places of each format', async () => {
    const home = await temporaryFolder()
    store(join(home, 'qwen-code'), 'qwen-code')
    store(join(home, 'claude-code-second'), 'claude-code')
    store(join(home, 'claude-code'), 'claude-code')
    expect(found(home)).toEqual([
      ['claude-code', join(home, 'claude-code')],
      ['claude-code', join(home, 'claude-code-second')],
      ['qwen-code', join(home, 'qwen-code')],
    ])
    expect(found(home, [], 'qwen-code')).toEqual([['qwen-code', join(home, 'qwen-code')]])
  })

  it('names every place looked at and why it is no store', async () => {
    const home = await temporaryFolder()
    store(join(home, 'claude-code'))
    writeFileSync(join(home, 'qwen-code'), '')
    expect(() => found(home)).toThrow(
      expect.objectContaining({
        code: 'NO_STORE',
        exitCode: 10,
        message: `no store was found; looked for ${[
          `${home}/claude-code (claude-code: not recognised)`,
          `${home}/claude-code-second (claude-code: it does not exist)`,
          `${home}/qwen-code (qwen-code: it is not a folder)`,
          `${home}/qwen-code-second (qwen-code: it does not exist)`,
        ].join(', ')}`,
      }) as Error,
    )
  })

  it('R02: two names of one real root are one store, by its real path', async () => {
    const home = await temporaryFolder()
    store(join(home, 'data'), 'claude-code')
    symlinkSync('data', join(home, 'claude-code'))
    symlinkSync('data', join(home, 'claude-code-second'))
    expect(found(home)).toEqual([['claude-code', join(home, 'data')]])
  })
})

describe('findRoots with roots given', () => {
  it('takes only those, in the order given, each real root once', async () => {
    const home = await temporaryFolder()
    store(join(home, 'claude-code'), 'claude-code')
    const [a, b] = [store(join(home, 'a'), 'qwen-code'), store(join(home, 'b'), 'claude-code')]
    symlinkSync('b', join(home, 'link'))
    expect(found(home, [b, a, join(home, 'link'), `${a}/`])).toEqual([
      ['claude-code', b],
      ['qwen-code', a],
    ])
  })

  it.each([
    ['none', /none: it does not exist/],
    ['file', /file: it is not a folder/],
    ['empty', /empty is not a store of claude-code or qwen-code/],
  ])('a root %s is an error even beside a good one', async (name, message) => {
    const home = await temporaryFolder()
    store(join(home, 'good'), 'claude-code')
    store(join(home, 'empty'))
    writeFileSync(join(home, 'file'), '')
    expect(() => found(home, [join(home, 'good'), join(home, name)])).toThrow(message)
  })

  it('a root of another format than the one asked for is no store', async () => {
    const home = await temporaryFolder()
    const root = store(join(home, 'a'), 'qwen-code')
    expect(() => found(home, [root], 'claude-code')).toThrow(/is not a store of claude-code$/)
  })

  it('a root that could be two formats needs --store', async () => {
    const home = await temporaryFolder()
    const root = store(join(home, 'both'), 'claude-code', 'qwen-code')
    expect(() => found(home, [root])).toThrow(expect.objectContaining({ code: 'USAGE', hint: 'add --store <format>' }) as Error)
    expect(found(home, [root], 'qwen-code')).toEqual([['qwen-code', root]])
  })

  it('puts the home folder in place of ~, which a shell leaves alone after =', async () => {
    const home = await temporaryFolder()
    store(join(home, 'a'), 'qwen-code')
    expect(found(home, ['~/a'])).toEqual([['qwen-code', join(home, 'a')]])
  })
})

describe('expandHome', () => {
  it.each([
    ['~', '/h'],
    ['~/x', '/h/x'],
    ['~other/x', '~other/x'],
    ['/a/~/x', '/a/~/x'],
    ['./~', './~'],
  ])('%s is %s', (path, expected) => {
    expect(expandHome(path, '/h')).toBe(expected)
  })
})
