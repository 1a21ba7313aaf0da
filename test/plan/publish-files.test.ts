import { appendFileSync, chmodSync, existsSync, lstatSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FenceError } from '../../src/model/errors.js'
import { publishFiles } from '../../src/plan/publish-files.js'
import { temporaryFolder } from '../helpers/temp.js'

interface Scene {
  readonly root: string
  readonly sidecar: string
}

async function scene(): Promise<Scene> {
  const base = await temporaryFolder()
  const root = join(base, 'store')
  mkdirSync(join(root, 's', 'backups'), { recursive: true })
  writeFileSync(join(root, 's', 'state.json'), 'old\n')
  chmodSync(join(root, 's', 'state.json'), 0o640)
  return { root, sidecar: join(root, '.rewind-admin') }
}

const bytes = (text: string): Buffer => Buffer.from(text)
const stateOf = ({ root }: Scene): string => readFileSync(join(root, 's', 'state.json'), 'utf8')

test('files come in their order; one that replaces another keeps its mode, a new one is private', async () => {
  const place = await scene()
  publishFiles(place, [{ path: 's/backups/a@v1', bytes: bytes('a') }, { path: 's/state.json', bytes: bytes('new\n') }], 'ab').keep()
  expect(stateOf(place)).toBe('new\n')
  expect(lstatSync(join(place.root, 's/state.json')).mode & 0o7777).toBe(0o640)
  expect(lstatSync(join(place.root, 's/backups/a@v1')).mode & 0o7777).toBe(0o600)
  expect(readdirSync(join(place.sidecar, 'staging'))).toEqual([])
})

test('undo gives back the very file that was replaced and takes new ones away', async () => {
  const place = await scene()
  const { ino } = lstatSync(join(place.root, 's/state.json'))
  publishFiles(place, [{ path: 's/backups/a@v1', bytes: bytes('a') }, { path: 's/state.json', bytes: bytes('new\n') }], 'ab').undo()
  expect(stateOf(place)).toBe('old\n')
  expect(lstatSync(join(place.root, 's/state.json')).ino).toBe(ino)
  expect(existsSync(join(place.root, 's/backups/a@v1'))).toBe(false)
})

test('R37: a new file never overwrites one that is there, and what was published before it is taken back', async () => {
  const place = await scene()
  const { size, mtimeNs } = lstatSync(join(place.root, 's/state.json'), { bigint: true })
  appendFileSync(join(place.root, 's/state.json'), 'more\n')
  const files = [{ path: 's/backups/a@v1', bytes: bytes('a') }, { path: 's/state.json', bytes: bytes('new\n'), was: { size: Number(size), mtimeNs: mtimeNs.toString() } }]
  expect(() => publishFiles(place, files, 'ab')).toThrow(FenceError)
  expect(stateOf(place)).toBe('old\nmore\n')
  expect(readdirSync(join(place.root, 's/backups'))).toEqual([])
  expect(readdirSync(join(place.sidecar, 'staging'))).toEqual([])
})

test('R55: a link on the way, or at the path itself, is refused and what it leads to stays as it is', async () => {
  const place = await scene()
  const outside = join(place.root, '..', 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'file'), 'theirs')
  symlinkSync(outside, join(place.root, 'way'))
  symlinkSync(join(outside, 'file'), join(place.root, 's', 'link'))
  expect(() => publishFiles(place, [{ path: 'way/new', bytes: bytes('x') }], 'ab')).toThrow(FenceError)
  expect(() => publishFiles(place, [{ path: 's/link', bytes: bytes('x') }], 'cd')).toThrow(FenceError)
  expect(readdirSync(outside)).toEqual(['file'])
  expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('theirs')
})
