import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { commandTable } from '../../src/cli/commands/table.js'
import { defineCommand } from '../../src/cli/commands/command.js'
import { describeCommands } from '../../src/cli/completion-script.js'
import { manPage } from '../../src/cli/man-page.js'
import { runCli } from '../../src/cli/run-cli.js'
import { readVersion } from '../../src/cli/version.js'
import { exitCodeTable } from '../../src/model/exit-code.js'
import { tableWith } from './reports.js'

const around = { env: {}, cwd: '/', home: '/' }
/** Programs that read such pages, and how they are asked to be strict. */
const readers = [
  ['mandoc', ['-T', 'lint', '-W', 'warning']],
  ['groff', ['-man', '-Tutf8', '-ww', '-z']],
] as const

/** The text of a page as a reader sees it, without what makes letters bold. */
function rendered(page: string): string {
  for (const [program, args] of [['mandoc', ['-T', 'utf8', '-O', 'width=200']], ['groff', ['-man', '-Tutf8', '-P-c', '-rLL=200n']]] as const) {
    const { stdout, status } = spawnSync(program, args, { input: page, encoding: 'utf8' })
    if (status === 0) return stdout.replace(/.\u0008/g, '')
  }
  return ''
}

function has(program: string): boolean {
  return spawnSync(program, ['--version']).error === undefined
}

describe('the manual page', () => {
  let page = ''
  beforeAll(async () => {
    page = (await runCli(['help', 'man', '--now', '2026-01-31'], around)).stdout
  })

  it('names every command with its example, every option, and every exit code', async () => {
    const plain = page.replaceAll('\\-', '-').replaceAll('\\(ti', '~').replaceAll('\n', ' ')
    for (const { name, example, describe: words } of commandTable) {
      expect(plain).toContain(`.SS ${name}`)
      expect(plain).toContain(`rewind-admin ${example}`)
      expect(plain).toContain(words)
    }
    for (const { options } of await describeCommands(commandTable)) for (const { word } of options) expect(plain).toMatch(new RegExp(`\\.BI? ${word}\\b`))
    for (const { code, meaning } of exitCodeTable) expect(plain).toMatch(new RegExp(`\\.BR ${String(code)} "[^"]*" ${meaning.replace(/[.()]/g, "\\$&")}`))
    expect(page.split('\n')[0]).toBe(`.TH REWIND\\-ADMIN 1 "2026-01-31" "rewind\\-admin ${readVersion()}" "User Commands"`)
  })

  it.each(readers)('%s reads it without a warning', (program, args) => {
    if (!has(program)) {
      console.log(`not checked: there is no ${program} on this machine`)
      return
    }
    const { stdout, stderr } = spawnSync(program, args, { input: page, encoding: 'utf8' })
    expect(stdout + stderr).toBe('')
  })

  it.runIf(has('mandoc') || has('groff'))('shows words that roff would take for its own as they are', async () => {
    const odd = `'.quoted' \\fB "x" -- ~ ^ \` $(y) 日本 .end`
    const module = defineCommand({ positionals: {}, options: { odd: { type: 'boolean', describe: odd } }, run: () => Promise.reject(new Error('not run')) })
    const [entry] = tableWith(module, '')
    if (entry === undefined) throw new Error('no entry')
    const text = rendered(await manPage([{ ...entry, describe: `.B ${odd}`, example: `'try \\e` }], { version: '1', date: '2026-01-31' }))
    for (const expected of [`.B ${odd}.`, `${odd}.`, `rewind-admin 'try \\e`]) expect(text).toContain(expected)
  })

  it('is the same in JSON', async () => {
    expect(JSON.parse((await runCli(['help', 'man', '--json', '--now', '2026-01-31'], around)).stdout)).toMatchObject({ command: 'help', man: page })
  })
})

// `help --help` is the help of the program.
it.each(commandTable.filter(({ name }) => name !== 'help').map(({ name, example }) => [name, example]))('%s --help ends with the example %s, and describes every option', async (name, example) => {
  const { stdout, exitCode } = await runCli([name, '--help'], around)
  expect(exitCode).toBe(0)
  expect(stdout).toContain(`Examples:\n  rewind-admin ${example}`)
  const [described] = await describeCommands(commandTable.filter((entry) => entry.name === name))
  expect(described?.options.filter(({ describe: words }) => words === '').map(({ word }) => word)).toEqual([])
})
