import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { jobs } from '../jobs/index.js'
import { commandTable } from '../src/cli/commands/table.js'
import { describeCommands } from '../src/cli/completion-script.js'
import { CapturedStream } from '../src/cli/output.js'
import { parseArguments } from '../src/cli/program.js'
import * as library from '../src/index.js'
import { allJobs } from '../src/operations/run/job.js'
import { exitCodeTable } from '../src/model/exit-code.js'
import { parseConfig } from '../src/settings/config.js'

const readme = readFileSync('README.md', 'utf8')
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly scripts: Readonly<Record<string, string>> }
/** Blocks of code with the language they are marked with. */
const blocks = [...readme.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({ language, text }))
/** Command lines in back quotes, without the program's name. */
const lines = [...readme.matchAll(/`rewind-admin ([^`]+)`/g)].map(([, line = '']) => line)

function parse(line: string): ReturnType<typeof parseArguments> {
  return parseArguments(line.split(' '), { commands: commandTable, stdout: new CapturedStream(), cwd: '/' })
}

describe('README.md', () => {
  it('shows the two commands for a fresh clone first, and they are scripts of the package', () => {
    const commands = (blocks[0]?.text ?? '').split('\n').map((line) => line.split('#')[0]?.trim()).filter((line) => line !== '' && line !== undefined)
    expect(commands).toEqual(['npm start', 'npm test'])
    expect(Object.keys(manifest.scripts)).toEqual(expect.arrayContaining(['start', 'test']))
    // Nothing else that could be typed comes before them.
    expect(readme.slice(0, readme.indexOf('npm start'))).not.toContain('`rewind-admin ')
  })

  it('shows a real run next, and no place is left to be filled in', () => {
    expect(blocks[1]?.text).toMatch(/recover[\s\S]*verify-quick[\s\S]*cap[\s\S]*expire[\s\S]*empty-trash/)
    expect(readme.match(/@@\w*|TODO|TBD|FIXME/g)).toBeNull()
  })

  it.each(commandTable.map(({ name }) => [name]))('names %s with an example', (name) => {
    const row = new RegExp(`^\\| \`${name}[^|]*\\|[^|]+\\| \`rewind-admin ${name}[ \`]`, 'm')
    expect([name, row.test(readme)]).toEqual([name, true])
  })

  it.each(lines.filter((line) => !line.includes('<')).map((line) => [line]))('%s is a command line that the program understands', async (line) => {
    const request = await parse(line)
    expect(request.kind === 'command' ? request.entry.name : 'text').toBe(line.split(' ')[0])
  })

  it('names only options that there are', async () => {
    const known = new Set((await describeCommands(commandTable)).flatMap(({ options }) => options.map(({ word }) => word)))
    const named = [...new Set([...readme.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([option]) => option))]
    expect(named.filter((option) => !known.has(option) && option !== '--version')).toEqual([])
    expect(named.length).toBeGreaterThan(10)
  })

  it('holds the whole table of exit codes', () => {
    const rows = readme.split('\n')
    const missing = exitCodeTable.filter(({ code, meaning }) => !rows.some((row) => new RegExp(`^[ |]*${String(code)}\\b`).test(row) && row.includes(meaning)))
    expect(missing.map(({ code }) => code)).toEqual([])
  })

  it('shows a configuration that is accepted as it stands', () => {
    const [json, ...others] = blocks.filter(({ language, text }) => language === 'json' && /^\s+"(roots|jobs|notify)"/m.test(text))
    expect(parseConfig(JSON.parse(json?.text ?? 'null'), '/home/me')).toMatchObject({ cap: 100 })
    const parts = others.map(({ text }) => parseConfig(JSON.parse(text), '/home/me'))
    expect(parts.flatMap((config) => allJobs(jobs, config.jobs)).map(({ name }) => name)).toContain('sunday')
    expect(parts.some(({ notify }) => notify.ping?.start === 'https://hc-ping.com/your-uuid/start')).toBe(true)
  })

  it('imports from the library only what there is', () => {
    const [example] = blocks.filter(({ language }) => language === 'ts')
    const names = /import \{ (.*) \} from 'rewind-admin'/.exec(example?.text ?? '')?.[1]?.split(', ') ?? []
    expect(names.length).toBeGreaterThan(0)
    expect(names.filter((name) => !(name in library))).toEqual([])
  })
})

describe('the examples of the commands', () => {
  it.each(commandTable.map(({ name, example }) => [name, example]))('of %s: rewind-admin %s can be parsed', async (name, example) => {
    const request = await parse(example)
    expect(request).toMatchObject({ kind: 'command', entry: { name } })
  })
})
