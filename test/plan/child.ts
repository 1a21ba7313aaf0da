import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import ts from 'typescript'

const project = resolve(import.meta.dirname, '../..')

/** Translates the model, fs and plan folders into JavaScript that a plain child process can import. Returns the folder. */
export function buildCore(into: string): string {
  writeFileSync(join(into, 'package.json'), '{"type":"module"}')
  symlinkSync(join(project, 'node_modules'), join(into, 'node_modules'))
  for (const room of ['model', 'fs', 'plan', 'formats']) {
    for (const name of readdirSync(join(project, 'src', room))) {
      if (!name.endsWith('.ts')) continue
      const target = join(into, room, name.replace(/\.ts$/, '.js'))
      const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true }
      mkdirSync(dirname(target), { recursive: true })
      writeFileSync(target, ts.transpileModule(readFileSync(join(project, 'src', room, name), 'utf8'), { compilerOptions }).outputText)
    }
  }
  return into
}

export interface ChildEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs ES module text in a child process that imports from the built core. */
export function runChild(core: string, source: string, args: readonly string[] = []): Promise<ChildEnd> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', source, '--', ...args], { cwd: core })
  const out = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (out.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (out.stderr += text))
  return new Promise((done, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => { done({ code, signal, ...out }) })
  })
}
