import { expect, it } from 'vitest'
import { runCli } from '../../../src/cli/run-cli.js'
import { exitCodeTable } from '../../../src/model/exit-code.js'

const around = { env: {}, cwd: '/', home: '/' }

it('help exit-codes prints every code with its meaning, and that any other is a failure', async () => {
  const { stdout, exitCode } = await runCli(['help', 'exit-codes'], around)
  expect(exitCode).toBe(0)
  const lines = stdout.trimEnd().split('\n')
  // Design section 5 names them all.
  expect(lines.slice(1, -1).map((line) => Number(line.trim().split(' ')[0]))).toEqual([0, 1, 2, 3, 4, 10, 11, 12, 28, 65, 75, 130, 143])
  for (const row of exitCodeTable) expect(stdout).toContain(row.meaning)
  expect(lines.at(-1)).toBe('Any other code is a failure.')
})

it('help exit-codes --json holds the same table', async () => {
  const { stdout } = await runCli(['help', 'exit-codes', '--json'], around)
  expect(JSON.parse(stdout)).toMatchObject({ command: 'help', exitCode: 0, exitCodes: exitCodeTable })
})
