import { redo } from '../../operations/rewind.js'
import { findSession } from '../../operations/show.js'
import { withLock, writingContext } from '../locked.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { rewindText } from './rewind-text.js'

export const command = defineCommand({
  positionals: {
    session: { type: 'string', demandOption: true, describe: 'A session id or a unique prefix' },
  },
  options: {
    apply: { type: 'boolean', describe: 'Act; without it nothing is written' },
    force: { type: 'boolean', describe: 'Go on although the session recorded edits after the rewind' },
    diff: { type: 'boolean', describe: 'Show the changes as a unified diff' },
  },
  async run(context, { session, apply, force, diff }) {
    const place = openWorkplace(context)
    const { store, ref, elsewhere } = findSession(place.stores, session, context.now())
    const flags = { apply: apply === true, force: force === true, diff: diff === true }
    const act = (): ReturnType<typeof redo> => redo(store, ref, flags, writingContext(context, place, 'redo'))
    const done = flags.apply ? await withLock(context, place, store, 'redo', act) : act()
    const report = { ...done, findings: [...elsewhere, ...done.findings] }
    return { report: flags.apply ? report : { ...report, next: 'Run it again with --apply to act.' }, text: () => ({ body: rewindText(report) }) }
  },
})
