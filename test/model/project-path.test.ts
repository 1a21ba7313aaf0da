import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isAbsolutePath, isAtOrBelow, isBelow, isNearMatch, isSameProject, isWindowsShaped, matchesProject } from '../../src/model/project-path.js'

const names = fc.stringMatching(/^[A-Za-z0-9 _.-]{1,8}$/).filter((name) => !/^\.{1,2}$/.test(name))
const namesList = fc.array(names, { minLength: 1, maxLength: 5 })

describe('isSameProject', () => {
  it.each([
    ['/r', '/r/'],
    ['/r/a', '/r//a///'],
    ['/r/./a', '/r/a'],
    ['/', '//'],
  ])('%s and %s are one project', (a, b) => {
    expect(isSameProject(a, b)).toBe(true)
  })

  it.each([
    ['C:\\p', 'c:\\p'],
    ['C:\\p', 'C:/p'],
    ['C:/P/Q', 'c:\\p\\q\\'],
    ['\\\\Server\\Share\\x', '//server/share/X'],
    ['\\\\?\\C:\\p', 'c:/p'],
    ['\\\\?\\UNC\\server\\share', '\\\\SERVER\\share'],
    ['C:\\É', 'c:\\é'],
  ])('R94: %s and %s are one project on every host', (a, b) => {
    expect(isSameProject(a, b)).toBe(true)
    expect(isSameProject(b, a)).toBe(true)
  })

  it.each([
    ['/r', '/R'],
    ['/r', '/r-extra'],
    ['/r/a', '/r\\a'],
    ['/c/p', 'C:\\p'],
    ['C:\\p', 'D:\\p'],
    ['\\\\server\\share', '/server/share'],
    ['\\\\c\\p', 'C:\\p'],
    ['/a/../b', '/b'],
    ['/caf\u00e9', '/cafe\u0301'],
    ['C:\\stra\u00dfe', 'C:\\STRASSE'],
    ['C:\\\u212a', 'C:\\k'],
    ['r', 'r'],
    ['', ''],
    ['C:p', 'C:p'],
  ])('%j and %j are not', (a, b) => {
    expect(isSameProject(a, b)).toBe(false)
    expect(isSameProject(b, a)).toBe(false)
  })

  it('R94: case and separators never matter for Windows-shaped paths', () => {
    fc.assert(
      fc.property(namesList, fc.constantFrom('C:', 'd:'), (list, drive) => {
        const path = `${drive}\\${list.join('\\')}`
        expect(isSameProject(path, `${drive.toUpperCase()}/${list.join('/').toUpperCase()}/`)).toBe(true)
      }),
    )
  })

  it('case always matters for POSIX paths', () => {
    fc.assert(
      fc.property(namesList, (list) => {
        const path = `/${list.join('/')}`
        expect(isSameProject(path, path.toUpperCase())).toBe(path === path.toUpperCase())
      }),
    )
  })
})

describe('isBelow', () => {
  it('R23: of /r, /r/a, /r/a/deep and /r-extra only two are below /r', () => {
    const found = ['/r', '/r/a', '/r/a/deep', '/r-extra'].filter((path) => isBelow(path, '/r'))
    expect(found).toEqual(['/r/a', '/r/a/deep'])
  })

  it('R100: /h/belf-docker is not below /h/belf, however that is spelled', () => {
    expect(isBelow('/h/belf-docker', '/h/belf')).toBe(false)
    expect(isBelow('/h/belf-docker', '/h/belf/')).toBe(false)
    expect(isBelow('/h/belf/docker', '/h/belf//')).toBe(true)
  })

  it('roots hold everything but themselves', () => {
    expect(isBelow('/a', '/')).toBe(true)
    expect(isBelow('/', '/')).toBe(false)
    expect(isBelow('C:\\a', 'c:/')).toBe(true)
    expect(isBelow('C:\\a', '/')).toBe(false)
  })

  it('a path that climbs is below nothing', () => {
    expect(isBelow('/r/../etc', '/r')).toBe(false)
    expect(isBelow('C:\\r\\..\\x', 'c:\\r')).toBe(false)
  })

  it('relative text is below nothing', () => {
    expect(isBelow('r/a', 'r')).toBe(false)
    expect(isBelow('/r/a', '')).toBe(false)
  })

  it('for any path: children are below, siblings with the same prefix never', () => {
    fc.assert(
      fc.property(namesList, names, fc.constantFrom('/', 'C:\\', '\\\\server\\'), (list, more, start) => {
        const separator = start === '/' ? '/' : '\\'
        const path = start + list.join(separator)
        expect(isBelow(`${path}${separator}${more}`, path)).toBe(true)
        expect(isBelow(`${path}-${more}`, path)).toBe(false)
        expect(isBelow(path, path)).toBe(false)
        expect(isBelow(path, `${path}${separator}${more}`)).toBe(false)
        expect(isAtOrBelow(path, `${path}${separator}`)).toBe(true)
      }),
    )
  })
})

describe('isNearMatch', () => {
  it('R95: names paths that differ in case or Unicode form only, and nothing else', () => {
    expect(isNearMatch('/Users/me/Projects/r', '/Users/me/projects/r')).toBe(true)
    expect(isNearMatch('/caf\u00e9', '/cafe\u0301')).toBe(true)
    expect(isNearMatch('/r', '/r/')).toBe(false)
    expect(isNearMatch('/r', '/s')).toBe(false)
  })
})

describe('matchesProject', () => {
  it.each([
    ['/r', '/r', true],
    ['/r', '/r/a', false],
    ['/r/**', '/r', true],
    ['/r/**', '/r/a/b', true],
    ['/r/**', '/r-extra', false],
    ['/**', '/anything', true],
    ['C:\\w\\**', 'c:/W/x', true],
    ['C:\\**', 'c:/W/x', true],
    ['C:\\**', 'D:\\x', false],
  ])('pattern %s and path %s: %s', (pattern, path, expected) => {
    expect(matchesProject(pattern, path)).toBe(expected)
  })
})

describe('shapes', () => {
  it.each([
    ['C:\\p', true, true],
    ['c:/p', true, true],
    ['\\\\s\\x', true, true],
    ['/p', false, true],
    ['//s/x', false, true],
    ['C:p', false, false],
    ['p', false, false],
    ['', false, false],
  ])('%j: Windows-shaped %s, absolute %s', (path, windows, absolute) => {
    expect(isWindowsShaped(path)).toBe(windows)
    expect(isAbsolutePath(path)).toBe(absolute)
  })
})
