import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/temp.js'

const script = resolve('test/ci/packed.sh')
/** Exit code of the script when the tarball cannot be installed for want of a registry. */
const cannotInstall = 77

function prove(...argv: readonly string[]): { readonly status: number | null; readonly stdout: string; readonly failed: readonly string[] } {
  const { status, stdout, stderr } = spawnSync(script, argv, { encoding: 'utf8' })
  const out = stdout + stderr
  return { status, stdout: out, failed: out.split('\n').filter((line) => line.startsWith('not ok')) }
}

/** The output of the script where it was run already, in good time, and ended with 0. */
const output = process.env.REWIND_ADMIN_TEST_PACKED
const proven = output === undefined ? undefined : { status: 0, stdout: readFileSync(output, 'utf8'), failed: [] }

describe.skipIf(process.platform === 'win32')('the packed program', () => {
  it('ends with the promised codes and writes reports that are valid by their schemas', { timeout: 900_000 }, (context) => {
    const { status, stdout, failed } = proven ?? prove()
    if (status === cannotInstall) {
      process.stderr.write(`skipped: ${context.task.name}: ${stdout.trimEnd().split('\n').at(-1) ?? ''}\n`)
      context.skip('the tarball cannot be installed')
    }
    expect([failed, status]).toEqual([[], 0])
    // Of each code and each format at least one line, so that nothing was left out on the way.
    for (const code of [0, 1, 2, 3, 4, 10, 11, 12, 28, 65, 75, 130, 143]) expect(stdout).toMatch(new RegExp(`^ok \\d+ - (${String(code)}:|# skipped: ${String(code)}:)`, 'm'))
    for (const format of ['junit', 'sarif', 'github', 'ndjson']) expect(stdout).toMatch(new RegExp(`^ok \\d+ - ${format}, `, 'm'))
  })

  it('is found out when it does not: the script ends with 1 and says which expectation failed', { timeout: 300_000 }, async () => {
    const folder = await temporaryFolder()
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'package.json'), '{"name": "rewind-admin", "version": "0.0.1", "bin": "bin/it.js"}')
    writeFileSync(join(folder, 'bin/it.js'), "#!/usr/bin/env node\nprocess.stdout.write('{}')\n", { mode: 0o755 })
    expect(spawnSync('npm', ['pack', '--silent'], { cwd: folder }).status).toBe(0)
    const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
    const { status, stdout, failed } = prove(join(folder, tarball))
    expect(status).toBe(1)
    // It ends with 0 whatever it is asked, so that only the expectations of another code or of a report fail.
    expect(stdout).toMatch(/^ok 1 - 0: --version$/m)
    expect(failed.filter((line) => / - (1|2|3|4|10|11|12|65|75|130|143): /.test(line))).toHaveLength(19)
    for (const format of ['junit', 'sarif', 'github']) expect(failed.filter((line) => line.includes(` - ${format}, `))).toHaveLength(5)
    expect(stdout).toMatch(/^\d+ of \d+ expectations failed$/m)
  })
})
