import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkGlobalFile } from '../../../src/formats/claude-code/global-file.js'
import { temporaryFolder } from '../../helpers/temp.js'

const quick = (): void => undefined

async function home(): Promise<{ home: string; root: string }> {
  const folder = await temporaryFolder()
  mkdirSync(join(folder, '.claude'))
  return { home: folder, root: join(folder, '.claude') }
}

describe('checkGlobalFile', () => {
  it('says nothing of a good file or of none', async () => {
    const { home: folder, root } = await home()
    expect(checkGlobalFile(root, folder, quick)).toEqual([])
    writeFileSync(join(folder, '.claude.json'), '{"projects":{}}')
    expect(checkGlobalFile(root, folder, quick)).toEqual([])
  })

  it('R111: a file cut in half with 30 corrupted copies is one finding', async () => {
    const { home: folder, root } = await home()
    writeFileSync(join(folder, '.claude.json'), '{"projects":{"/p":{')
    for (let copy = 0; copy < 30; copy++) writeFileSync(join(folder, `.claude.json.corrupted.${String(1_700_000_000_000 + copy)}`), '{')
    const findings = checkGlobalFile(root, folder, quick)
    expect(findings).toHaveLength(1)
    expect(findings).toMatchObject([{ id: 'global-file-damaged', severity: 'warn', place: { path: join(folder, '.claude.json') } }])
    expect(findings[0]?.message).toMatch(/not valid JSON; 30 corrupted copies/)
  })

  it('R111: a file that is being rewritten is read again before it counts as damaged', async () => {
    const { home: folder, root } = await home()
    const file = join(folder, '.claude.json')
    writeFileSync(file, '{"pro')
    const pauses: number[] = []
    const findings = checkGlobalFile(root, folder, (ms) => {
      pauses.push(ms)
      if (pauses.length === 2) writeFileSync(file, '{}')
    })
    expect(findings).toEqual([])
    expect(pauses).toHaveLength(2)
  })

  it('finds the file in the root, and in the home of a root that is a link', async () => {
    const folder = await temporaryFolder()
    const root = join(folder, 'data')
    mkdirSync(root)
    mkdirSync(join(folder, 'home'))
    symlinkSync('../data', join(folder, 'home/.claude'))
    writeFileSync(join(root, '.claude.json'), '')
    writeFileSync(join(folder, 'home/.claude.json'), '[]')
    const paths = checkGlobalFile(root, join(folder, 'home'), quick).map(({ place }) => place?.path)
    expect(paths).toEqual([join(root, '.claude.json'), join(folder, 'home/.claude.json')])
  })

  it('leaves the global file of another root alone', async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'work'))
    writeFileSync(join(folder, '.claude.json'), '{')
    expect(checkGlobalFile(join(folder, 'work'), folder, quick)).toEqual([])
  })
})
