import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { extractStore } from '../helpers/corpus.js'
import { uuidOf } from '../helpers/identity.js'
import { H, emptyRoot, snap, userLine, writeBackup, writeTranscript } from '../helpers/store.js'

// The tarball as somebody installs it elsewhere. Built files are taken as they are: `npm test` builds them first.
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'rewind-admin-install-')))
const shell = process.platform === 'win32'
let missing: string | undefined
let tarball = ''

afterAll(() => {
  rmSync(folder, { recursive: true, force: true })
})

beforeAll(() => {
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { shell, stdio: 'ignore' })
  const [packed = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  tarball = join(folder, packed)
  mkdirSync(join(folder, 'elsewhere'))
  writeFileSync(join(folder, 'elsewhere/package.json'), '{"private": true}')
  const argv = ['install', '--prefer-offline', '--omit=dev', '--no-audit', '--no-fund', '--fetch-retries=0', '--fetch-timeout=20000', tarball]
  const { status, stderr } = spawnSync('npm', argv, { cwd: join(folder, 'elsewhere'), shell, encoding: 'utf8' })
  if (status === 0) return
  const unreachable = /EAI_AGAIN|ENOTFOUND|ENOTCACHED|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|network/.test(stderr)
  if (!unreachable) throw new Error(`npm install failed: ${stderr}`)
  missing = 'the registry cannot be reached, and the cache of npm does not hold the dependencies'
}, 120_000)

describe('the package, installed in another folder', () => {
  const run = (...argv: readonly string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(join(folder, 'elsewhere/node_modules/.bin/rewind-admin'), argv, { cwd: join(folder, 'elsewhere'), shell, encoding: 'utf8', env: { PATH: process.env.PATH, HOME: folder } })

  it('runs, finds its version, and verifies real stores, with its threads too', async (context) => {
    if (missing !== undefined) {
      process.stderr.write(`skipped: ${context.task.name}: ${missing}\n`)
      context.skip(missing)
    }
    expect(run('--version').stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    const { root } = await extractStore('2.1.332', 'basic')
    const { status, stdout, stderr } = run('verify', '--root', root)
    expect([status, stderr]).toEqual([0, ''])
    expect(stdout).toContain('0 errors')
    // More sessions than are looked at in one thread.
    const many = await emptyRoot()
    for (let index = 0; index < 100; index += 1) {
      const session = uuidOf(`install/${String(index)}`)
      const message = uuidOf(`install/m/${String(index)}`)
      writeTranscript(many, '-p', session, [userLine(message, { session }), snap(message, { 'a.md': `${H}@v1` })])
      writeBackup(many, session, `${H}@v1`, 'robin\n')
    }
    const report = JSON.parse(run('verify', '--seal', '--json', '--root', many).stdout) as { exitCode: number; summary: Record<string, unknown> }
    expect([report.exitCode, report.summary.sessions, report.summary.digested]).toEqual([0, 100, 100])
  })

  it('can be used as a library, with its types beside it', (context) => {
    if (missing !== undefined) context.skip(missing)
    const script = "import * as library from 'rewind-admin'; if (Object.keys(library).length === 0) process.exit(1)"
    expect(spawnSync(process.execPath, ['--input-type=module', '-e', script], { cwd: join(folder, 'elsewhere') }).status).toBe(0)
    expect(existsSync(join(folder, 'elsewhere/node_modules/rewind-admin/dist/src/index.d.ts'))).toBe(true)
  })

  it('came without tests, sources or tools of development', (context) => {
    if (missing !== undefined) context.skip(missing)
    const installed = join(folder, 'elsewhere/node_modules/rewind-admin')
    expect(readdirSync(installed).filter((name) => name !== 'node_modules').sort()).toEqual(['CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'dist', 'package.json'].filter((name) => existsSync(resolve(name))))
    for (const name of ['typescript', 'vitest', 'eslint']) expect(existsSync(join(folder, 'elsewhere/node_modules', name))).toBe(false)
  })
})

/** Every Node of this machine by its version: the one that runs this, those of the usual managers, and those that are named. */
function nodes(): (readonly [version: string, program: string])[] {
  const places = ['/usr/bin', '/usr/local/bin', ...below(join(homedir(), '.nvm/versions/node'), 'bin'), ...below('/usr/local/n/versions/node', 'bin'), ...below('/opt', 'bin'), ...below(join(homedir(), '.volta/tools/image/node'), 'bin')]
  const named = (process.env.REWIND_ADMIN_TEST_NODES ?? '').split(delimiter).filter((path) => path !== '')
  const programs = [process.execPath, ...named, ...places.map((place) => join(place, 'node'))].filter((path) => existsSync(path))
  const versions = programs.map((path) => [spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.trim(), path] as const)
  const supported = versions.filter(([version]) => Number(/^v(\d+)\./.exec(version)?.[1]) >= 20)
  return [...new Map(supported.toReversed()).entries()]
}

function below(folder: string, name: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((each) => join(folder, each, name)) : []
}

describe.skipIf(shell).each(nodes())('on Node %s', (version, program) => {
  // npm and the program are started by the first node of the path.
  const bin = join(folder, `bin-${version}`)
  const env = { PATH: `${bin}${delimiter}${process.env.PATH ?? ''}`, HOME: homedir(), npm_config_cache: process.env.npm_config_cache }
  const offline = ['--prefer-offline', '--no-audit', '--no-fund', '--fetch-retries=0', '--fetch-timeout=20000']
  const asThere = (command: string, ...argv: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly stderr: string } =>
    spawnSync(command, argv, { cwd: join(folder, `home-${version}`), env, encoding: 'utf8' })

  beforeAll(() => {
    mkdirSync(bin)
    mkdirSync(join(folder, `home-${version}`))
    writeFileSync(join(bin, 'node'), `#!/bin/sh\nexec '${program}' "$@"\n`, { mode: 0o755 })
  })

  it('npx runs the tarball', { timeout: 180_000 }, (context) => {
    if (missing !== undefined) context.skip(missing)
    const npx = (...argv: readonly string[]): ReturnType<typeof asThere> => asThere('npx', '--yes', ...offline, '--package', tarball, 'rewind-admin', ...argv)
    expect(npx('--version')).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string })
    expect(npx('help', 'exit-codes').stdout).toContain('retention-unknowable')
  })

  it('a global install of the tarball puts the program in place', { timeout: 180_000 }, async (context) => {
    if (missing !== undefined) context.skip(missing)
    const prefix = join(folder, `prefix-${version}`)
    expect(asThere('npm', 'install', '-g', '--prefix', prefix, ...offline, tarball)).toMatchObject({ status: 0 })
    const installed = join(prefix, 'bin/rewind-admin')
    expect(asThere(installed, '--version')).toMatchObject({ status: 0, stderr: '' })
    const { root } = await extractStore('2.1.332', 'basic')
    const { status, stdout, stderr } = asThere(installed, 'verify', '--json', '--root', root)
    expect([status, stderr, (JSON.parse(stdout) as { exitCode: number }).exitCode]).toEqual([0, '', 0])
    // What runs is the Node of this round.
    expect(asThere('node', '--version').stdout.trim()).toBe(version)
    expect(dirname(realpathSync(installed))).toBe(join(realpathSync(prefix), 'lib/node_modules/rewind-admin/bin'))
  })
})
