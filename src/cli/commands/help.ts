import { ExitCode, exitCodeTable } from '../../model/exit-code.js'
import { UsageError } from '../../model/errors.js'
import { noItems } from '../../model/report.js'
import { table } from '../text/table.js'
import { defineCommand } from './command.js'

/** `help exit-codes`. `help <command>` never gets here: it is `<command> --help`. */
export const command = defineCommand({
  positionals: {
    topic: { type: 'string', describe: 'exit-codes, or a command' },
  },
  options: {},
  run(_context, { topic }) {
    if (topic !== 'exit-codes') {
      throw new UsageError(`there is no help on ${topic ?? 'nothing'}`, {
        hint: 'rewind-admin --help lists the commands; rewind-admin help exit-codes the exit codes',
      })
    }
    const report = {
      command: 'help',
      roots: [],
      applied: false,
      summary: {},
      ...noItems,
      exitCode: ExitCode.done,
      extra: { exitCodes: exitCodeTable.map((row) => ({ ...row })) },
    }
    const columns = [{ title: 'code', align: 'right' }, { title: 'name' }, { title: 'meaning' }] as const
    const rows = exitCodeTable.map((row) => [String(row.code), row.name, row.meaning])
    return Promise.resolve({ report, text: () => ({ body: `${table(columns, rows)}Any other code is a failure.\n` }) })
  },
})
