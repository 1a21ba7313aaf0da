import { ExitCode } from '../../model/exit-code.js'
import { noItems } from '../../model/report.js'
import { completionScript, describeCommands, shells } from '../completion-script.js'
import { defineCommand } from './command.js'
import { commandTable } from './table.js'

/** Prints the completion script of a shell. */
export const command = defineCommand({
  positionals: {
    shell: { choices: shells, demandOption: true, describe: 'The shell that will read the script' },
  },
  options: {},
  async run(_context, { shell }) {
    const script = completionScript(shell, await describeCommands(commandTable))
    const report = {
      command: 'completion',
      roots: [],
      applied: false,
      summary: {},
      ...noItems,
      exitCode: ExitCode.done,
      extra: { shell, script },
    }
    return { report, text: () => ({ body: script }) }
  },
})
