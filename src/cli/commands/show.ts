import { show } from '../../operations/show.js'
import { table } from '../text/table.js'
import { clip } from '../text/width.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { fieldsOf, wordOf } from './session-table.js'

/** Columns of the terminal that a prompt gets. */
const promptWidth = 50

export const command = defineCommand({
  positionals: {
    session: { type: 'string', demandOption: true, describe: 'A session id or a unique prefix' },
  },
  options: {
    files: { type: 'boolean', describe: 'List the files of every checkpoint' },
  },
  run(context, { session, files }) {
    const { stores } = openWorkplace(context)
    const report = show(stores, session, context.now())
    return Promise.resolve({ report, text: () => ({ body: body(report, files === true) }) })
  },
})

function body(report: ReturnType<typeof show>, files: boolean): string {
  const { summary } = report
  const head = `session ${wordOf(summary.session)}\nproject ${wordOf(summary.project)}\n\n`
  const columns = [{ title: 'checkpoint' }, { title: 'time' }, { title: 'files', align: 'right' }, { title: 'rewind' }, { title: 'message' }] as const
  const rows = fieldsOf(report.extra?.checkpoints).flatMap((checkpoint) => {
    const own = fieldsOf(checkpoint.files)
    const row = [
      wordOf(checkpoint.id),
      wordOf(checkpoint.time).slice(0, 16).replace('T', ' '),
      String(own.length),
      `${checkpoint.restorable === true ? 'whole' : 'partly'}${checkpoint.active === false ? ', off the branch' : ''}`,
      clip(wordOf(checkpoint.text).replace(/\s+/g, ' '), promptWidth),
    ]
    const listed = own.map((file) => ['', '', '', wordOf(file.state), `${wordOf(file.path)}${file.backup === null ? '' : ` (${wordOf(file.backup)})`}`])
    return files ? [row, ...listed] : [row]
  })
  return rows.length === 0 ? `${head}no checkpoints\n` : `${head}${table(columns, rows)}`
}
