import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import ts from 'typescript'
import { afterAll, describe, expect, it } from 'vitest'
import * as library from '../../src/index.js'

interface Manifest {
  readonly bin: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string }>>
  readonly scripts: Readonly<Record<string, string>>
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest

/** A copy of what is packed from, made ready as `npm pack` does. */
function slimCopy(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rewind-admin-package-'))
  for (const name of ['package.json', 'bin', 'dist', 'README.md', 'CHANGELOG.md', 'LICENSE']) cpSync(name, join(folder, name), { recursive: true })
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
  execFileSync('npm', ['run', '--silent', 'man'], { cwd: folder, shell: process.platform === 'win32' })
  execFileSync(process.execPath, ['.ci/slim.js', folder])
  return folder
}

const folder = slimCopy()
afterAll(() => { rmSync(folder, { recursive: true, force: true }) })

describe('the package', () => {
  // npm gives a list up to version 11, an object by name from 12 on.
  const output: unknown = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: folder, encoding: 'utf8', shell: process.platform === 'win32' }),
  )
  const [packed] = Object.values(output as Record<string, { readonly size: number; readonly files: readonly { readonly path: string }[] }>)
  const paths = (packed?.files ?? []).map(({ path }) => path)

  it('holds what it needs to run and to be used as a library', () => {
    const named = [...Object.values(manifest.bin), manifest.exports['.']?.types, manifest.exports['.']?.default].map((path) =>
      path?.replace('./', ''),
    )
    const needed = [...named, 'package.json', 'README.md', 'CHANGELOG.md', 'LICENSE', 'dist/src/cli/main.js']
    expect(needed.filter((path) => path === undefined || !paths.includes(path))).toEqual([])
  })

  it('holds nothing else: no tests, no sources, no build state', () => {
    expect(
      paths.filter(
        (path) => !/^(bin\/rewind-admin\.js|dist\/(src|jobs)\/.*\.js|dist\/(src\/(?!cli\/)|jobs\/).*\.d\.ts|man\/rewind-admin\.1|README\.md|CHANGELOG\.md|LICENSE|package\.json)$/.test(path),
      ),
    ).toEqual([])
  })

  it('is smaller than 300 kB', () => {
    expect(packed?.size).toBeGreaterThan(10_000)
    expect(packed?.size).toBeLessThan(300_000)
  })

  it('runs: the program, its thread and the library', () => {
    const run = (...words: string[]): string => execFileSync(process.execPath, words, { cwd: folder, env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder }, encoding: 'utf8' })
    expect(run('bin/rewind-admin.js', '--version').trim()).toBe((JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }).version)
    const report = run('bin/rewind-admin.js', 'run', 'nightly', '--sample-if-none', '--json', '--now', '2026-11-30T12:00:00Z')
    expect(JSON.parse(report)).toMatchObject({ command: 'run' })
    expect(run('--input-type=module', '-e', "import { verify } from 'rewind-admin'; console.log(typeof verify)").trim()).toBe('function')
  })

  it('records for an agent, with parts that are loaded for nothing else', () => {
    const input = JSON.stringify({ event: 'edit', session: 's', cwd: folder, paths: ['package.json'] })
    const { status, stdout, stderr } = spawnSync(process.execPath, ['bin/rewind-admin.js', 'hook', 'generic', '--root', join(folder, 'records')], { cwd: folder, env: { HOME: folder }, input, encoding: 'utf8' })
    expect([status, stdout, stderr]).toEqual([0, '', ''])
    const state = JSON.parse(readFileSync(join(folder, 'records/s/state.json'), 'utf8')) as { readonly trackedFiles: readonly string[] }
    expect(state.trackedFiles).toEqual(['package.json'])
  })

  it('has types for all that the library exports, whole and in one file', () => {
    const names = Object.keys(library).sort()
    const program = `import { ${names.join(', ')}, type Store, type Recorder } from './dist/src/index.js'
      export const all: unknown[] = [${names.join(', ')}]
      export const one: (store: Store, recorder: Recorder) => Promise<boolean> = (store, recorder) => recorder.nameTurn(store.root)
      // @ts-expect-error there is no such kind
      finding('nonsense', 'x')`
    writeFileSync(join(folder, 'uses.ts'), program)
    const options = { strict: true, noEmit: true, skipLibCheck: false, module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2023, lib: ['lib.es2023.d.ts'], types: ['node'] }
    const problems = ts.getPreEmitDiagnostics(ts.createProgram([join(folder, 'uses.ts')], options)).filter(({ file }) => file?.fileName.includes('node_modules') !== true)
    expect(problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))).toEqual([])
    const types = readFileSync(join(folder, 'dist/src/index.d.ts'), 'utf8')
    expect(types).toContain('/** Makes the baseline, so that the first turn can be undone. */')
    expect(paths.filter((path) => path.endsWith('.d.ts'))).toEqual(['dist/src/index.d.ts'])
  }, 60_000)

  it('has nothing to prepare when it was prepared: the check of the installation says nothing and installs nothing', () => {
    const check = /^node -e "(.*)" && /.exec(manifest.scripts.ready ?? '')?.[1]
    if (check === undefined) throw new Error('the script ready has changed its shape')
    expect(execFileSync(process.execPath, ['-e', check], { encoding: 'utf8' })).toBe('')
  })
})
