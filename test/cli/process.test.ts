import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, openSync, rmSync, writeFileSync, closeSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

// True processes, on the built files that users run: `npm test` builds them first.
const bin = resolve('bin/rewind-admin.js')
const built = resolve('dist/src/cli/process.js')
const folder = mkdtempSync(join(tmpdir(), 'rewind-admin-process-'))
afterAll(() => {
  rmSync(folder, { recursive: true })
})
if (!existsSync(built)) throw new Error('there is no built command line: npm run build')

/** A script that runs a command line whose one command has this body; `context` is in its reach. */
function scriptWith(body: string): string {
  const file = join(folder, `${String(Math.random()).slice(2)}.mjs`)
  writeFileSync(
    file,
    `
    import { runProcess } from ${JSON.stringify(pathToFileURL(built).href)}
    const report = { command: 'try', roots: [], applied: false, summary: { all: 'done' }, findings: [], plan: [], kept: [], errors: [], exitCode: 0 }
    const module = { positionals: {}, options: {}, run: async (context) => { ${body}; return { report } } }
    await runProcess({ commands: [{ name: 'try', usage: '', describe: '', example: 'try', load: async () => module }] })
  `,
  )
  return file
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function collect(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (data) => {
    stdout += String(data)
  })
  child.stderr?.on('data', (data) => {
    stderr += String(data)
  })
  return new Promise((done) =>
    child.on('close', (code) => {
      done({ code, stdout, stderr })
    }),
  )
}

async function startedUntil(child: ChildProcess, words: string): Promise<void> {
  await new Promise<void>((ready) =>
    child.stderr?.on('data', (data) => {
      if (String(data).includes(words)) ready()
    }),
  )
}

describe('the process', () => {
  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
    for (const flag of ['--version', '-V']) expect(execFileSync(process.execPath, [bin, flag], { encoding: 'utf8' })).toBe(`${version}\n`)
  })

  it('answers --version before it loads anything but node itself', () => {
    const hook = join(folder, 'hook.mjs')
    writeFileSync(
      hook,
      `
      import { register } from 'node:module'
      const source = 'export async function load(url, context, next) { process._rawDebug("loaded " + url); return next(url, context) }'
      register('data:text/javascript,' + encodeURIComponent(source))
    `,
    )
    const { stderr } = spawnSync(process.execPath, ['--import', pathToFileURL(hook).href, bin, '--version'], { encoding: 'utf8' })
    const loaded = stderr
      .split('\n')
      .filter((line) => line.startsWith('loaded file:'))
      .map((line) => line.slice(line.lastIndexOf('/') + 1))
    expect(loaded).toEqual(['rewind-admin.js', 'main.js', 'version.js'])
  })

  it('sets the exit code of the run', () => {
    expect(spawnSync(process.execPath, [bin, 'nonsense']).status).toBe(2)
    expect(spawnSync(process.execPath, [bin, 'help', 'exit-codes']).status).toBe(0)
  })

  it('does not end early or complain when its reader goes away', async () => {
    const marker = join(folder, 'marker')
    const script = scriptWith(`
      const { setTimeout } = await import('node:timers/promises')
      context.stdout.write('x'.repeat(1e6)); await setTimeout(50); context.stdout.write('more')
      const { writeFileSync } = await import('node:fs'); writeFileSync(${JSON.stringify(marker)}, '')
    `)
    const child = spawn(process.execPath, [script, 'try'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    expect(await collect(child)).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(marker)).toBe(true)
  })

  it.runIf(existsSync('/dev/full'))('says when the result cannot be written and ends with the code for a full disk (R106)', () => {
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [bin, 'help', 'exit-codes'], {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    })
    closeSync(full)
    expect(status).toBe(28)
    expect(stderr).toContain('rewind-admin: ENOSPC')
  })

  it('runs in a folder that was removed, and without a home', () => {
    const gone = mkdtempSync(join(folder, 'gone-'))
    const { status, stderr } = spawnSync('sh', ['-c', 'rmdir "$PWD"; exec "$0" "$@"', process.execPath, bin, 'help', 'exit-codes'], {
      cwd: gone,
      encoding: 'utf8',
      env: { PATH: process.env.PATH },
    })
    expect([status, stderr]).toEqual([0, ''])
  })

  it.each([
    ['a stray rejection', 'Promise.reject(new Error("stray")); await new Promise((r) => setTimeout(r, 50))', 2],
    [
      'a stray exception',
      'setTimeout(() => { throw Object.assign(new Error("stray"), { code: "ENOSPC" }) }); await new Promise((r) => setTimeout(r, 50))',
      28,
    ],
  ])('%s never ends with 1, which means findings', async (_name, body, code) => {
    const ended = await collect(spawn(process.execPath, [scriptWith(body), 'try']))
    expect(ended).toMatchObject({ code, stderr: expect.stringContaining('rewind-admin: stray') as string })
  })
})

describe('signals (R125)', () => {
  const patient =
    'process._rawDebug("ready"); await new Promise((r) => { const t = setInterval(() => {}, 1000); context.signal.addEventListener("abort", () => { clearInterval(t); r() }) })'
  const deaf =
    'process._rawDebug("ready"); context.signal.addEventListener("abort", () => process._rawDebug("heard")); await new Promise((r) => setTimeout(r, 60000))'

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('%s lets the item in work finish, then ends with %i and the report', async (signal, code) => {
    const child = spawn(process.execPath, [scriptWith(patient), 'try', '--json'])
    const ended = collect(child)
    await startedUntil(child, 'ready')
    child.kill(signal)
    const { stdout, ...rest } = await ended
    expect(rest).toMatchObject({ code })
    expect(JSON.parse(stdout)).toMatchObject({ summary: { all: 'done' }, exitCode: code })
  })

  it('a second SIGINT ends at once', async () => {
    const child = spawn(process.execPath, [scriptWith(deaf), 'try'])
    const ended = collect(child)
    await startedUntil(child, 'ready')
    child.kill('SIGINT')
    await startedUntil(child, 'heard')
    child.kill('SIGINT')
    expect(await ended).toMatchObject({ code: 130, stdout: '' })
  })
})
