import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { commandTable } from '../../../src/cli/commands/table.js'
import { defineCommand } from '../../../src/cli/commands/command.js'
import { completionScript, describeCommands, shells } from '../../../src/cli/completion-script.js'
import { runCli } from '../../../src/cli/run-cli.js'
import { S1, S2 } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temp.js'
import { tableWith } from '../reports.js'
import { cliIn, notes } from '../world.js'

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
const realCommands = await describeCommands(commandTable)

function has(shell: string): boolean {
  return spawnSync(shell, ['-c', 'exit 0']).status === 0
}

/** A program in place of ours that gives two ids, and what it was last called with. */
async function standIn(): Promise<{ path: string; calls: () => string[] }> {
  const folder = await temporaryFolder()
  const path = join(folder, 'rewind-admin')
  const log = join(folder, 'calls')
  writeFileSync(path, `#!/bin/sh\nprintf '%s\\n' "$@" > '${log}'\nprintf '%s\\n' ${S1} ${S2}\necho noise >&2\n`, { mode: 0o755 })
  return { path, calls: () => readFileSync(log, 'utf8').trimEnd().split('\n') }
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

  it.each(shells)('for %s is a script that the shell accepts', async (shell) => {
    if (!has(shell)) {
      console.log(`not checked: there is no ${shell} on this machine`)
      return
    }
    const script = join(await temporaryFolder(), 'script')
    for (const described of [commands, realCommands]) {
      writeFileSync(script, completionScript(shell, described))
      const { status, stderr } = spawnSync(shell, ['-n', script], { encoding: 'utf8' })
      expect([status, stderr]).toEqual([0, ''])
    }
  })

  it.runIf(has('bash'))('in bash offers commands, then their words, options and values', () => {
    expect(bashOffers('')).toEqual(['try', 't', '--help', '--version'])
    expect(bashOffers('try', 'l')).toEqual(['list'])
    expect(bashOffers('try', '--f')).toEqual(['--fail-on'])
    expect(bashOffers('try', '--fail-on', '')).toEqual(['error', 'warn'])
    expect(bashOffers('--root', 'x', 't', '--store', 'q')).toEqual(['qwen-code'])
    expect(bashOffers('try', '--out', '')).toEqual([])
  })

  it.runIf(has('bash'))('in bash asks the program for ids of sessions, where one may be, with the words that were typed', async () => {
    const { path, calls } = await standIn()
    const script = `${completionScript('bash', realCommands)}
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rewind_admin; printf '%s\\n' "\${COMPREPLY[@]}"`
    const offers = (...words: string[]): string[] => execFileSync('bash', ['-uc', script, 'bash', path, ...words], { encoding: 'utf8' }).split('\n').filter(Boolean)
    expect(offers('show', '--root', '/a b', '1')).toEqual([S1])
    expect(calls()).toEqual(['completion', 'sessions', '--word=show', '--word=--root', '--word=/a b'])
    expect(offers('show', '')).toEqual(expect.arrayContaining([S1, S2, '--files']))
    expect(offers('show', '--fi')).toEqual(['--files'])
    expect(offers('cap', '1')).toEqual([])
  })

  it.runIf(has('zsh'))('in zsh too', async () => {
    const { path, calls } = await standIn()
    const script = `compdef() { :; }; _describe() { :; }; _files() { :; }; compadd() { shift; print -l -- "$@"; }
${completionScript('zsh', realCommands)}
words=("$@"); CURRENT=$#; _rewind_admin`
    const offers = (...words: string[]): string[] => execFileSync('zsh', ['-fc', script, 'zsh', path, ...words], { encoding: 'utf8' }).split('\n').filter(Boolean)
    expect(offers('verify', S1, '--root', '/a b', '')).toEqual([S1, S2])
    expect(calls()).toEqual(['completion', 'sessions', '--word=verify', `--word=${S1}`, '--word=--root', '--word=/a b'])
    expect(offers('show', '--f')).toEqual([])
    expect(offers('cap', '')).toEqual([])
  })

  it.runIf(has('fish'))('in fish too', async () => {
    const { path, calls } = await standIn()
    const home = dirname(path)
    const offers = (line: string): string[] =>
      execFileSync('fish', ['--no-config', '-c', `${completionScript('fish', realCommands)}\ncomplete -C ${JSON.stringify(line)}`], { encoding: 'utf8', cwd: home, env: { HOME: home, PATH: `${home}:${process.env.PATH ?? ''}` } })
        .split('\n')
        .filter((word) => /^[12]/.test(word))
    expect(offers('rewind-admin rewind 2')).toEqual([S2])
    expect(calls()).toEqual(['completion', 'sessions', '--word=rewind'])
    expect(offers('rewind-admin cap 2')).toEqual([])
  })

  it('answers with the ids of the stores that the line names, by names alone, and with nothing where none may be', async () => {
    const { root, cli } = await notes()
    const ask = async (...words: string[]): Promise<string[]> => (await cli('completion', 'sessions', ...words.map((word) => `--word=${word}`))).stdout.split('\n').filter(Boolean)
    // Nothing of them is opened.
    for (const id of [S1, S2]) chmodSync(join(root, 'projects/-home-u-notes', `${id}.jsonl`), 0)
    expect(await ask('show', '--root', root)).toEqual([S1, S2])
    expect(await ask('--root', '=', root, 'verify', S1, '--quick')).toEqual([S1, S2])
    expect(await ask('fork', `--root=${root}`, S1)).toEqual([S1, S2])
    for (const words of [['show', S1], ['rewind', S1], ['fork', S1, S2], ['cap'], ['trash', 'restore', 'x'], ['show', '--root'], ['verify', '--project'], []]) {
      expect([words, await ask('--root', root, ...words)]).toEqual([words, []])
    }
  })

  it('is silent where there is no store: nothing on standard output, and nothing to complete', async () => {
    const { home, root } = await notes()
    const { stdout, exitCode } = await cliIn(home)('completion', 'sessions', '--word=show', '--word=--root', `--word=${root}/none`)
    expect([stdout, exitCode]).toEqual(['', 10])
  })

  it('keeps hidden options to itself', () => {
    for (const shell of shells) expect(completionScript(shell, commands)).not.toMatch(/secret|--now\b|-l now/)
  })
})
