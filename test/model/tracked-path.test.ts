import { describe, expect, it } from 'vitest'
import { isBelow, linkFence, trackedTarget } from '../../src/model/tracked-path.js'

describe('the path a tracked key stands for', () => {
  it.each([
    ['a.txt', '/home/u/p/a.txt'],
    ['src/deep/b.ts', '/home/u/p/src/deep/b.ts'],
    ['/etc/hosts', '/etc/hosts'],
    ['../q/c.txt', '/home/u/q/c.txt'],
    ['../../../../x', '/x'],
    ['./src/../d', '/home/u/p/d'],
    ['__proto__', '/home/u/p/__proto__'],
    ['constructor/__proto__', '/home/u/p/constructor/__proto__'],
    ['back\\slash', '/home/u/p/back\\slash'],
    ['-dash', '/home/u/p/-dash'],
    [' ', '/home/u/p/ '],
    ['nfd-e\u0301.txt', '/home/u/p/nfd-e\u0301.txt'],
    ['line\nfeed', '/home/u/p/line\nfeed'],
    ['CON', '/home/u/p/CON'],
  ])('R102: %j is %j', (key, path) => {
    expect(trackedTarget(key, '/home/u/p')).toEqual({ path })
  })

  it.each([
    ['', /empty/],
    ['a\0b', /NUL/],
    ['half \ud83d', /surrogate/],
    ['folder/', /folder/],
    ['a/..', /folder/],
    ['.', /folder/],
    ['/', /folder/],
    ['C:\\p\\a.ts', /Windows/],
    ['c:/p/a.ts', /Windows/],
    ['\\\\server\\share\\a.ts', /Windows/],
  ])('R94: %j stands for no file here and is refused with a reason', (key, reason) => {
    const target = trackedTarget(key, '/home/u/p')
    expect('refused' in target ? target.refused : target.path).toMatch(reason)
  })

  it('a relative key needs an absolute start folder', () => {
    expect(trackedTarget('a.txt', undefined)).toHaveProperty('refused')
    expect(trackedTarget('a.txt', 'C:\\p')).toHaveProperty('refused')
    expect(trackedTarget('/a.txt', undefined)).toEqual({ path: '/a.txt' })
  })

  it('R94: on Windows keys have the shape of Windows, and a stream of a file is no file', () => {
    expect(trackedTarget('src\\a.ts', 'C:\\p', true)).toEqual({ path: 'C:\\p\\src\\a.ts' })
    expect(trackedTarget('src/a.ts', 'C:\\p', true)).toEqual({ path: 'C:\\p\\src\\a.ts' })
    expect(trackedTarget('d:/q/a.ts', 'C:\\p', true)).toEqual({ path: 'd:\\q\\a.ts' })
    expect(trackedTarget('a.ts:hidden', 'C:\\p', true)).toHaveProperty('refused')
  })
})

describe('the folder below which no link may stand', () => {
  it.each([
    ['/home/u/p/src/a.ts', '/home/u/p'],
    ['/home/u/q/a.ts', '/home/u'],
    ['/home/u/p2/a.ts', '/home/u'],
    ['/tmp/x/y/a.ts', '/tmp'],
    ['/a.ts', '/'],
  ])('section 4, rule 2: of %s it is %s', (path, fence) => {
    expect(linkFence(path, '/home/u/p', '/home/u')).toBe(fence)
  })

  it('a start folder with a slash at its end, or none, changes nothing', () => {
    expect(linkFence('/home/u/p/src/a.ts', '/home/u/p/', '/home/u')).toBe('/home/u/p')
    expect(linkFence('/home/u/p/src/a.ts', undefined, '/home/u')).toBe('/home/u')
  })

  it('below is below, name by name', () => {
    expect(isBelow('/a/b', '/a')).toBe(true)
    expect(isBelow('/ab', '/a')).toBe(false)
    expect(isBelow('/a', '/a')).toBe(false)
    expect(isBelow('/a', '/')).toBe(true)
  })
})
