import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { commandTable } from '../../src/cli/commands/table.js'
import { CapturedStream } from '../../src/cli/output.js'
import { parseArguments } from '../../src/cli/program.js'
import { H, S1, emptyRoot, snap, userLine, writeBackup, writeTranscript } from '../helpers/store.js'
import { temporaryFolder } from '../helpers/temp.js'

interface Step {
  readonly name?: string
  readonly uses?: string
  readonly run?: string
  readonly if?: string
  readonly with?: Readonly<Record<string, unknown>>
}

interface Workflow {
  readonly on: Readonly<Record<string, unknown>>
  readonly permissions: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, { readonly 'runs-on': string; readonly steps: readonly Step[] }>>
}

const readme = readFileSync('README.md', 'utf8')
const workflow = parse(/^```yaml\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? '', { version: '1.2' }) as Workflow
const steps = Object.values(workflow.jobs).flatMap((job) => job.steps)
const lines = steps.map(({ run = '' }) => run).filter((run) => run.includes('rewind-admin ') && run.includes('verify'))
const baselineLine = /`(rewind-admin verify [^`]*> (\.github\/[\w.-]+))`/.exec(readme)

/** A checkout with a store in it, and the built program on the path. */
async function checkout(): Promise<{ readonly folder: string; readonly store: string; readonly run: (line: string) => { readonly status: number | null; readonly stdout: string } }> {
  const folder = await temporaryFolder()
  const store = join(folder, workflow.env.STORE ?? '')
  mkdirSync(join(folder, 'fixtures'))
  mkdirSync(join(folder, '.github'))
  mkdirSync(join(folder, 'bin'))
  writeFileSync(join(folder, 'bin/rewind-admin'), `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/rewind-admin.js')}' "$@" --now 2026-11-02T09:00:00Z\n`, { mode: 0o755 })
  renameSync(await emptyRoot(), store)
  writeTranscript(store, '-p', S1, [userLine('m1'), snap('m1', { 'a.md': `${H}@v1` }), userLine('m2', { parent: 'm1' }), snap('m2', { 'a.md': `${H}@v2` })])
  writeBackup(store, S1, `${H}@v1`, 'robin\n')
  writeBackup(store, S1, `${H}@v2`, 'wren\n')
  return {
    folder,
    store,
    // As the runner does it: `bash -e {0}`.
    run: (line) => spawnSync('bash', ['-e', '-c', line], { cwd: folder, encoding: 'utf8', env: { ...workflow.env, PATH: `${folder}/bin:${process.env.PATH ?? ''}`, HOME: folder } }),
  }
}

const reportOf = (folder: string): string[] => {
  const log = JSON.parse(readFileSync(join(folder, 'rewind.sarif'), 'utf8')) as { runs: { results: { ruleId: string }[] }[] }
  return log.runs.flatMap(({ results }) => results.map(({ ruleId }) => ruleId))
}

describe('the workflow in the README', () => {
  it('is YAML with what GitHub needs: when, with which rights, where, and steps that are one thing each', () => {
    expect(Object.keys(workflow)).toEqual(['name', 'on', 'permissions', 'env', 'jobs'])
    expect(Object.keys(workflow.on).sort()).toEqual(['push', 'schedule'])
    // Uploading SARIF needs this right, and nothing here needs another.
    expect(workflow.permissions).toEqual({ 'contents': 'read', 'security-events': 'write' })
    for (const step of steps) {
      expect(Object.keys(step).filter((key) => !['name', 'uses', 'run', 'if', 'with'].includes(key))).toEqual([])
      expect([step.run, step.uses].filter((each) => each !== undefined)).toHaveLength(1)
      if (step.uses !== undefined) expect(step.uses).toMatch(/^[\w-]+\/[\w/-]+@v\d+$/)
    }
    expect(steps.at(-1)?.with?.sarif_file).toBe('rewind.sarif')
  })

  it('uses only commands and options that there are', async () => {
    expect(lines).toHaveLength(2)
    const formats: unknown[] = []
    for (const line of [...lines, baselineLine?.[1] ?? '']) {
      const [command = ''] = line.split(/ \|\| | > /)
      const words = command.trim().split(' ').slice(1).map((word) => word.replaceAll('"', ''))
      const request = await parseArguments(words, { commands: commandTable, stdout: new CapturedStream(), cwd: '/' })
      if (request.kind !== 'command') throw new Error(`${line} is no command`)
      expect(request.entry.name).toBe('verify')
      formats.push(request.argv.format)
    }
    expect(formats).toEqual(['github', 'sarif', 'json'])
    // Whoever follows the words above it writes the file that the workflow reads.
    expect(lines.some((line) => line.includes(`--baseline ${baselineLine?.[2] ?? 'none'} `))).toBe(true)
  })

  it.skipIf(process.platform === 'win32')('passes a good store, fails on what is new, and accepts what is in the baseline', async () => {
    const { folder, store, run } = await checkout()
    const codes = (): (number | null)[] => lines.map((line) => run(line).status)
    expect(run(baselineLine?.[1] ?? 'false').status).toBe(0)
    expect(codes()).toEqual([0, 0])
    expect(reportOf(folder)).not.toContain('missing-backup')

    rmSync(join(store, `file-history/${S1}/${H}@v2`))
    expect(codes()).toEqual([1, 0])
    expect(run(lines[0] ?? '').stdout).toContain(`::error file=${store}/file-history/${S1}/${H}@v2,title=rewind-admin missing-backup::`)
    expect(reportOf(folder)).toContain('missing-backup')

    expect(run(baselineLine?.[1] ?? 'false').status).toBe(1)
    expect(codes()).toEqual([0, 0])
    expect(reportOf(folder)).toContain('missing-backup')
    rmSync(join(store, `file-history/${S1}/${H}@v1`))
    expect(codes()).toEqual([1, 0])
  })

  it.skipIf(process.platform === 'win32')('fails in both steps when the store cannot be judged', async () => {
    const { folder, store, run } = await checkout()
    writeFileSync(join(folder, '.github/rewind-baseline.json'), '[]')
    appendFileSync(join(store, `projects/-p/${S1}.jsonl`), '{"type":"file-history-pack"}\n')
    expect(lines.map((line) => run(line).status)).toEqual([12, 1])
    rmSync(store, { recursive: true })
    expect(lines.map((line) => run(line).status)).toEqual([10, 1])
    expect(existsSync(store)).toBe(false)
  })
})
