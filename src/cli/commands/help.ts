import { ExitCode, exitCodeTable } from '../../model/exit-code.js'
import { UsageError } from '../../model/errors.js'
import { noItems, type Report } from '../../model/report.js'
import { manPage } from '../man-page.js'
import { table } from '../text/table.js'
import { readVersion } from '../version.js'
import { defineCommand } from './command.js'
import { commandTable } from './table.js'

/** `help exit-codes` and `help man`. `help <command>` never gets here: it is `<command> --help`. */
export const command = defineCommand({
  positionals: {
    topic: { type: 'string', describe: 'exit-codes, man, or a command' },
  },
  options: {},
  async run(context, { topic }) {
    if (topic === 'man') {
      const man = await manPage(commandTable, { version: readVersion(), date: new Date(context.now()).toISOString().slice(0, 10) })
      return { report: reportOf({ man }), text: () => ({ body: man }) }
    }
    if (topic !== 'exit-codes') {
      throw new UsageError(`there is no help on ${topic ?? 'nothing'}`, {
        hint: 'rewind-admin --help lists the commands, help exit-codes the exit codes; help man is the manual page',
      })
    }
    const columns = [{ title: 'code', align: 'right' }, { title: 'name' }, { title: 'meaning' }] as const
    const rows = exitCodeTable.map((row) => [String(row.code), row.name, row.meaning])
    return {
      report: reportOf({ exitCodes: exitCodeTable.map((row) => ({ ...row })) }),
      text: () => ({ body: `${table(columns, rows)}Any other code is a failure.\n` }),
    }
  },
})

function reportOf(extra: NonNullable<Report['extra']>): Report {
  return { command: 'help', roots: [], applied: false, summary: {}, ...noItems, exitCode: ExitCode.done, extra }
}
