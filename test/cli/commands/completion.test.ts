import { execFileSync, spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { commandTable } from '../../../src/cli/commands/table.js'
import { defineCommand } from '../../../src/cli/commands/command.js'
import { completionScript, describeCommands, shells } from '../../../src/cli/completion-script.js'
import { runCli } from '../../../src/cli/run-cli.js'
import { tableWith } from '../reports.js'

const module = defineCommand({
  positionals: { action: { choices: ['list', 'empty'] } },
  options: {
    'fail-on': { choices: ['error', 'warn'], describe: "When it's a failure: $(x) `y` \\" },
    'out': { type: 'string' },
    'apply': { type: 'boolean' },
    'secret': { type: 'boolean', hidden: true },
  },
  run: () => Promise.reject(new Error('not run')),
})
const commands = await describeCommands(tableWith(module, '<action>'))

function has(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0
}

/** What bash offers when the last of `words` is completed. */
function bashOffers(...words: string[]): string[] {
  const script = `${completionScript('bash', commands)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rewind_admin; printf '%s\\n' "\${COMPREPLY[@]}"`
  return execFileSync('bash', ['-uc', script, 'bash', 'rewind-admin', ...words], { encoding: 'utf8' })
    .split('\n')
    .filter(Boolean)
}

describe('completion', () => {
  it.each(shells)('prints a script for %s from the real table, and the same in JSON', async (shell) => {
    const around = { env: {}, cwd: '/', home: '/' }
    const { stdout, exitCode } = await runCli(['completion', shell], around)
    expect(exitCode).toBe(0)
    for (const { name } of commandTable) expect(stdout).toContain(name)
    for (const option of ['root', 'json', 'help']) expect(stdout).toContain(option)
    expect(JSON.parse((await runCli(['completion', shell, '--json'], around)).stdout)).toMatchObject({ shell, script: stdout })
  })

  it('of another shell is a usage error', async () => {
    expect(await runCli(['completion', 'tcsh'], { env: {}, cwd: '/', home: '/' })).toMatchObject({ exitCode: 2, stdout: '' })
  })

  it.each(shells)('for %s is a script that the shell accepts', (shell) => {
    if (!has(shell)) {
      console.log(`not checked: there is no ${shell} on this machine`)
      return
    }
    const { status, stderr } = spawnSync(shell, ['-n'], { input: completionScript(shell, commands), encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })

  it.runIf(has('bash'))('in bash offers commands, then their words, options and values', () => {
    expect(bashOffers('')).toEqual(['try', 't', '--help', '--version'])
    expect(bashOffers('try', 'l')).toEqual(['list'])
    expect(bashOffers('try', '--f')).toEqual(['--fail-on'])
    expect(bashOffers('try', '--fail-on', '')).toEqual(['error', 'warn'])
    expect(bashOffers('--root', 'x', 't', '--store', 'q')).toEqual(['qwen-code'])
    expect(bashOffers('try', '--out', '')).toEqual([])
  })

  it('keeps hidden options to itself', () => {
    for (const shell of shells) expect(completionScript(shell, commands)).not.toMatch(/secret|--now|-l now/)
  })
})
