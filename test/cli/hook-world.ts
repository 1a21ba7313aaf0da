import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Readable } from 'node:stream'
import { parseHook } from '../../src/cli/hook/parse.js'
import { hookSetting, runHook } from '../../src/cli/hook/run.js'
import { runCli } from '../../src/cli/run-cli.js'
import { temporaryFolder } from '../helpers/temp.js'

/** The program as agents start it; built before tests. */
export const bin = resolve('bin/rewind-admin.js')

export interface HookEnd {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** What is asserted of every hook that went well: an agent sees nothing of it. */
export const silent: HookEnd = { code: 0, stdout: '', stderr: '' }

/** Starts the program; its standard input is left open. */
export function startProgram(words: readonly string[], env: Readonly<Record<string, string>>, cwd: string): { readonly child: ChildProcessWithoutNullStreams; readonly end: Promise<HookEnd> } {
  const child = spawn(process.execPath, [bin, ...words], { cwd, env: { PATH: process.env.PATH ?? '', ...env } })
  const output = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text))
  child.stdin.on('error', () => undefined)
  const end = new Promise<HookEnd>((done, failed) => {
    child.on('error', failed)
    child.on('close', (code) => { done({ code, ...output }) })
  })
  return { child, end }
}

/** A home with a project in it, and an agent that calls hooks as child processes. */
export class HookWorld {
  readonly home: string
  readonly project: string
  readonly root: string
  readonly transcript: string
  readonly session: string

  readonly #inProcess: boolean

  private constructor(home: string, session: string, inProcess: boolean) {
    this.#inProcess = inProcess
    this.home = home
    this.session = session
    this.project = join(home, 'project')
    this.root = join(home, '.local/share/rewind-admin/sessions')
    this.transcript = join(home, `.claude/projects/-project/${session}.jsonl`)
    mkdirSync(this.project)
  }

  /** @param inProcess hooks run in this process, which is quicker: where they are only what makes a store */
  static async make({ session = '6a5c9b1e-0f52-4a5e-9c3b-1d2e3f405161', inProcess = false } = {}): Promise<HookWorld> {
    return new HookWorld(await temporaryFolder(), session, inProcess)
  }

  /** Runs a command line in the project: hooks as agents start them, other commands by the program's own entry, which is quicker. */
  async program(words: readonly string[], input = ''): Promise<HookEnd> {
    if (!words.includes('hook')) {
      const { exitCode, stdout, stderr } = await runCli(words, { env: { HOME: this.home }, cwd: this.project, home: this.home })
      return { code: exitCode, stdout, stderr }
    }
    if (this.#inProcess) return this.#hook(words, input)
    const { child, end } = startProgram(words, { HOME: this.home }, this.project)
    child.stdin.end(input)
    return end
  }

  async #hook(words: readonly string[], input: string): Promise<HookEnd> {
    const around = { env: { HOME: this.home }, cwd: this.project, home: this.home }
    const begun = performance.now()
    const said: string[] = []
    const call = parseHook(words)
    await runHook(call, hookSetting(call.argv, around), {
      ...around,
      stdin: Readable.from([Buffer.from(input)]),
      clock: () => Date.now(),
      running: () => performance.now() - begun,
      say: (level, message) => { if (level === 'warn') said.push(message) },
      giveUp: () => { said.push('gave up') },
    })
    // What a real process keeps to itself is shown here: a store that is made for a test is made without a warning.
    return { code: 0, stdout: '', stderr: said.join('\n') }
  }

  /** Calls a hook as Claude Code does, with the fields that every event has. */
  claude(event: string, fields: Readonly<Record<string, unknown>> = {}, ...options: readonly string[]): Promise<HookEnd> {
    const input = { session_id: this.session, transcript_path: this.transcript, cwd: this.project, hook_event_name: event, ...fields }
    return this.program(['hook', 'claude-code', ...options], JSON.stringify(input))
  }

  prompt(prompt: string, ...options: readonly string[]): Promise<HookEnd> {
    return this.claude('UserPromptSubmit', { prompt, permission_mode: 'default' }, ...options)
  }

  /** The hook before a tool writes to a file of the project. */
  before(tool: string, name: string, ...options: readonly string[]): Promise<HookEnd> {
    const path = resolve(this.project, name)
    return this.claude('PreToolUse', { tool_name: tool, tool_use_id: 'toolu_01', tool_input: tool === 'NotebookEdit' ? { notebook_path: path } : { file_path: path } }, ...options)
  }

  /** Calls a hook as any other agent may. */
  generic(fields: Readonly<Record<string, unknown>>, ...options: readonly string[]): Promise<HookEnd> {
    return this.program(['hook', 'generic', ...options], JSON.stringify({ session: this.session, cwd: this.project, ...fields }))
  }

  write(name: string, text: string | Buffer): void {
    const path = resolve(this.project, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }

  read(name: string): string {
    return readFileSync(resolve(this.project, name), 'utf8')
  }

  /** Adds lines to the transcript, as the client does some time after the hook of a prompt. */
  transcribe(...lines: readonly unknown[]): void {
    mkdirSync(dirname(this.transcript), { recursive: true })
    appendFileSync(this.transcript, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''))
  }

  /** The line of a prompt, as the client writes it. */
  userLine(uuid: string, content: unknown, fields: Readonly<Record<string, unknown>> = {}): unknown {
    return { parentUuid: null, isSidechain: false, type: 'user', message: { role: 'user', content }, uuid, timestamp: '2026-11-30T12:00:00.000Z', cwd: this.project, sessionId: this.session, version: '2.1.332', ...fields }
  }

  get state(): HookState {
    return JSON.parse(readFileSync(join(this.root, this.session, 'state.json'), 'utf8')) as HookState
  }

  backup(name: string): Buffer {
    return readFileSync(join(this.root, this.session, 'backups', name))
  }
}

interface HookRecord {
  readonly backupFileName: string | null
  readonly version: number
  readonly gap?: string
}

/** A state as its file has it. */
export interface HookState {
  readonly cwd: string
  readonly snapshotSequence: number
  readonly snapshots: readonly { readonly key: string; readonly kind: string; readonly files: Readonly<Record<string, HookRecord>> }[]
  readonly originals: Readonly<Record<string, HookRecord>>
  readonly trackedFiles: readonly string[]
  readonly recorder: { readonly lostTurns: number; readonly leftOut: number; readonly endedAt: string | null; readonly turn?: { readonly message: string; readonly transcript?: unknown }; readonly messages: readonly { readonly id: string; readonly text?: string }[] }
}
