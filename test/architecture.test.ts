import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

/**
 * The walls of the layout (design section 4). A room is a folder of `src`, `jobs`, `bin`, or `index` for `src/index.ts`; each names the
 * rooms it may import from besides itself, and where only some files may be seen, those files.
 */
const rooms: Readonly<Record<string, readonly string[]>> = {
  model: [],
  fs: ['model'],
  formats: ['model', 'fs'],
  plan: ['model', 'fs', 'formats/format.ts'],
  settings: ['model', 'fs'],
  schedule: ['model', 'fs'],
  operations: ['plan', 'formats', 'schedule', 'settings', 'model', 'fs'],
  recorder: ['plan', 'formats', 'settings', 'model', 'fs'],
  jobs: ['operations', 'model'],
  index: ['operations', 'recorder', 'plan', 'formats', 'schedule', 'settings', 'model', 'fs', 'jobs'],
  cli: ['operations', 'recorder', 'plan', 'formats', 'schedule', 'settings', 'model', 'fs', 'jobs'],
  bin: ['dist/src/cli/main.js'],
}

/** Packages that only the command line may use. */
const cliPackages = ['yargs', 'pino']

interface Violation {
  readonly line: number
  readonly what: string
}

/** Imports, exports-from and dynamic imports of a file, with their line. */
function importsOf(source: ts.SourceFile): { readonly line: number; readonly specifier: string }[] {
  const found: { line: number; specifier: string }[] = []
  visit(source, (node) => {
    const target =
      ts.isImportDeclaration(node) || ts.isExportDeclaration(node)
        ? node.moduleSpecifier
        : ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword
          ? node.arguments[0]
          : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)
            ? node.argument.literal
            : ts.isNewExpression(node) &&
                node.expression.getText(source) === 'URL' &&
                node.arguments?.[1]?.getText(source) === 'import.meta.url'
              ? node.arguments[0]
              : undefined
    if (target !== undefined && ts.isStringLiteralLike(target)) found.push({ line: lineOf(source, node), specifier: target.text })
  })
  return found
}

/** What breaks the walls in a file; `path` is relative to the project. */
function wallsBroken(path: string, text: string): Violation[] {
  const source = parse(path, text)
  const room = roomOf(path)
  return importsOf(source).flatMap(({ line, specifier }) => {
    if (!specifier.startsWith('.')) {
      const taken = cliPackages.find((name) => specifier === name || specifier.startsWith(`${name}/`))
      return taken !== undefined && room !== 'cli' ? [{ line, what: `${room} may not use ${taken}: only cli may` }] : []
    }
    const target = join(dirname(path), specifier)
      .replaceAll('\\', '/')
      .replace(/(?<=^(?:src|jobs)\/.*)\.js$/, '.ts')
    return mayImport(path, target) ? [] : [{ line, what: `${room} may not import ${target}` }]
  })
}

function mayImport(path: string, target: string): boolean {
  const from = roomOf(path)
  const to = roomOf(target)
  const allowed = rooms[from]
  if (allowed === undefined) return false
  // The version is read from the manifest, wherever the file is built to.
  if (from === 'cli' && /^(\.\.\/)*package\.json$/.test(target)) return true
  if (from === 'formats' && to === 'formats') return sameFormat(path, target)
  return from === to || allowed.includes(to) || allowed.some((entry) => target === entry || target === `src/${entry}`)
}

/** A format sees its own folder and the shared files; the registry sees all. */
function sameFormat(path: string, target: string): boolean {
  const [, , own, inner] = path.split('/')
  const [, , other, deeper] = target.split('/')
  return deeper === undefined || own === 'registry.ts' || (inner !== undefined && own === other)
}

/** What a library file does that only the command line may: print, exit, read the environment or a clock. */
function librarySins(path: string, text: string): Violation[] {
  const source = parse(path, text)
  const found: Violation[] = []
  visit(source, (node) => {
    const what = sinOf(node, source)
    if (what !== undefined) found.push({ line: lineOf(source, node), what })
  })
  return found
}

const forbidden: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/^(globalThis\.)?console\.\w+$/, 'prints'],
  [/^(globalThis\.)?process\.(stdout|stderr)$/, 'prints'],
  [/^(globalThis\.)?process\.(exit|abort|exitCode)$/, 'exits'],
  [/^(globalThis\.)?process\.env$/, 'reads the environment'],
  [/^(globalThis\.)?(Date\.now|performance\.now|process\.hrtime|process\.uptime)$/, 'reads the clock'],
]

function sinOf(node: ts.Node, source: ts.SourceFile): string | undefined {
  if (ts.isPropertyAccessExpression(node)) {
    const name = node.getText(source).replace(/\s|\?/g, '')
    const sin = forbidden.find(([pattern]) => pattern.test(name))
    return sin === undefined ? undefined : `${sin[1]}: ${name}`
  }
  if (ts.isElementAccessExpression(node) && /^(process|console|Date)$/.test(node.expression.getText(source)))
    return `hides what it does: ${node.getText(source)}`
  const isDate = (ts.isNewExpression(node) || ts.isCallExpression(node)) && node.expression.getText(source) === 'Date'
  if (isDate && (node.arguments?.length ?? 0) === 0) return `reads the clock: ${node.getText(source)}`
  if (ts.isImportDeclaration(node) && /^(node:)?(process|console|perf_hooks)$/.test((node.moduleSpecifier as ts.StringLiteral).text))
    return `imports ${node.moduleSpecifier.getText(source)}`
  if (
    ts.isVariableDeclaration(node) &&
    ts.isObjectBindingPattern(node.name) &&
    /^(process|console|Date|performance)$/.test(node.initializer?.getText(source) ?? '')
  ) {
    return `takes ${node.getText(source)} apart`
  }
  return undefined
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node)
  ts.forEachChild(node, (child) => {
    visit(child, see)
  })
}

function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true)
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
}

function roomOf(path: string): string {
  if (path === 'src/index.ts') return 'index'
  const [top = '', room = ''] = path.split('/')
  return top === 'src' ? room : top
}

/** Source files below a folder, relative to the project, with `/` between names. */
function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => relative('.', resolve(folder, name)).replaceAll('\\', '/'))
    .filter((path) => /\.[cm]?[jt]s$/.test(path) && statSync(path).isFile())
}

function report(paths: readonly string[], check: (path: string, text: string) => Violation[]): string[] {
  return paths.flatMap((path) => check(path, readFileSync(path, 'utf8')).map(({ line, what }) => `${path}:${String(line)} ${what}`))
}

const files = ['src', 'jobs', 'bin'].flatMap(filesIn)

describe('the layout of the source', () => {
  it('imports go one way: cli → operations → plan, formats, schedule, settings → model, fs', () => {
    expect(files).toEqual(expect.arrayContaining(['src/model/report.ts', 'src/fs/lock.ts', 'src/cli/main.ts', 'bin/rewind-admin.js']))
    expect(report(files, wallsBroken)).toEqual([])
  })

  it('only the command line prints, exits, reads the clock or the environment', () => {
    expect(
      report(
        files.filter((path) => !path.startsWith('src/cli/')),
        librarySins,
      ),
    ).toEqual([])
  })

  it('has no folder or file that is named after nothing', () => {
    expect(files.filter((path) => /(^|\/)(utils?|helpers?|common|misc)(\/|\.)/i.test(path))).toEqual([])
  })

  it('the runner in bin loads the built command line and does nothing else', () => {
    expect(filesIn('bin')).toEqual(['bin/rewind-admin.js'])
    expect(readFileSync('bin/rewind-admin.js', 'utf8')).toBe("#!/usr/bin/env node\nimport '../dist/src/cli/main.js'\n")
  })
})

describe('the check itself', () => {
  it.each([
    ['src/model/a.ts', `\nimport { x } from '../fs/lock.js'`, ['2 model may not import src/fs/lock.ts']],
    ['src/fs/a.ts', `export * from '../formats/format.js'`, ['1 fs may not import src/formats/format.ts']],
    ['src/plan/a.ts', `import type { X } from '../formats/format.js'`, []],
    [
      'src/plan/a.ts',
      `const x = await import('../formats/claude-code/scan.js')`,
      ['1 plan may not import src/formats/claude-code/scan.ts'],
    ],
    ['src/settings/a.ts', `import '../schedule/b.js'`, ['1 settings may not import src/schedule/b.ts']],
    ['src/operations/verify/a.ts', `import '../../cli/main.js'`, ['1 operations may not import src/cli/main.ts']],
    ['src/operations/verify/a.ts', `import '../../plan/a.js'\nimport './b.js'\nimport '../list.js'`, []],
    [
      'src/formats/claude-code/a.ts',
      `import '../format.js'\nimport './b.js'\nimport '../qwen-code/b.js'`,
      ['3 formats may not import src/formats/qwen-code/b.ts'],
    ],
    ['src/formats/registry.ts', `import './qwen-code/index.js'`, []],
    ['src/model/a.ts', `type X = import('../fs/lock.js').X`, ['1 model may not import src/fs/lock.ts']],
    ['src/fs/a.ts', `new Worker(new URL('../cli/worker.js', import.meta.url))`, ['1 fs may not import src/cli/worker.ts']],
    ['src/operations/a.ts', `import { pino } from 'pino'`, ['1 operations may not use pino: only cli may']],
    ['src/operations/a.ts', `import '../../test/helpers/temp.js'`, ['1 operations may not import test/helpers/temp.js']],
    ['bin/x.js', `import '../dist/src/index.js'`, ['1 bin may not import dist/src/index.js']],
    ['src/cli/version.ts', `new URL('../../package.json', import.meta.url)`, []],
  ])('in %s sees the imports of %j', (path, text, expected) => {
    expect(wallsBroken(path, text).map(({ line, what }) => `${String(line)} ${what}`)).toEqual(expected)
  })

  it.each([
    ['\nconsole.log(1)', '2 prints: console.log'],
    ['process.stdout.write("")', '1 prints: process.stdout'],
    ['process.exit(1)', '1 exits: process.exit'],
    ['const e = process.env.HOME', '1 reads the environment: process.env'],
    ['const { env } = process', '1 takes { env } = process apart'],
    ['const e = process["env"]', '1 hides what it does: process["env"]'],
    ['import { env } from "node:process"', '1 imports "node:process"'],
    ['Date.now()', '1 reads the clock: Date.now'],
    ['const clock = Date.now', '1 reads the clock: Date.now'],
    ['new Date()', '1 reads the clock: new Date()'],
    ['performance.now()', '1 reads the clock: performance.now'],
  ])('sees %j', (text, expected) => {
    expect(librarySins('src/fs/a.ts', text).map(({ line, what }) => `${String(line)} ${what}`)).toEqual([expected])
  })

  it('lets a given time be turned into a date, and process be asked for what never changes', () => {
    expect(librarySins('src/fs/a.ts', 'new Date(now); process.platform; options.env; log.console.log(1)')).toEqual([])
  })
})
