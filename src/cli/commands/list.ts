import { list } from '../../operations/list.js'
import { table } from '../text/table.js'
import { bytesText, countText } from '../text/units.js'
import { openWorkplace, sessionProgress } from '../workplace.js'
import { defineCommand } from './command.js'
import { projectPath } from './paths.js'
import { sessionRows, sessionColumns } from './session-table.js'

export const command = defineCommand({
  positionals: {},
  options: {
    project: { type: 'string', describe: 'Only sessions that were started in this folder' },
  },
  run(context, { project }) {
    const { stores, machine } = openWorkplace(context)
    const progress = sessionProgress(context, 'sessions')
    const report = list(stores, project === undefined ? {} : { project: projectPath(context, project) }, { now: context.now(), machine, progress })
    const bytes = Number(report.summary.bytes)
    return Promise.resolve({
      report,
      text: () => ({
        body: table(sessionColumns, sessionRows(report)),
        closing: `${countText(Number(report.summary.sessions), 'session')}, ${bytesText(bytes)} in backups\n`,
      }),
    })
  },
})
