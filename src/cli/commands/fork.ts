import { UsageError } from '../../model/errors.js'
import { isUuid } from '../../model/names.js'
import { fork } from '../../operations/fork/fork.js'
import { findSession } from '../../operations/show.js'
import { withLock, writingContext } from '../locked.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'

export const command = defineCommand({
  positionals: {
    old: { type: 'string', demandOption: true, describe: 'The session to take from, by id or unique prefix' },
    new: { type: 'string', demandOption: true, describe: 'The whole id of the session to give to' },
  },
  options: {
    at: { type: 'string', describe: 'Cut the conversation before this message' },
    copy: { type: 'boolean', describe: 'Copy the backups instead of linking them' },
    reflink: { type: 'boolean', describe: 'Clone the backups where the file system can' },
    all: { type: 'boolean', describe: 'Also backups that the new session does not name' },
  },
  async run(context, options) {
    if (options.copy === true && options.reflink === true) throw new UsageError('--copy and --reflink exclude each other')
    const place = openWorkplace(context)
    // Agents that name sessions otherwise say so themselves.
    if (!isUuid(options.new) && place.stores.every(({ copying }) => copying === undefined)) {
      throw new UsageError(`${options.new} is not a session id`, { hint: 'a session id is a lower-case UUID; uuidgen | tr A-Z a-z makes one' })
    }
    const { store, ref, elsewhere } = findSession(place.stores, options.old, context.now())
    const method = options.copy === true ? { method: 'copy' as const } : options.reflink === true ? { method: 'reflink' as const } : {}
    const report = await withLock(context, place, store, 'fork', () =>
      fork(
        store,
        ref.id,
        options.new,
        { ...(options.at === undefined ? {} : { at: options.at }), ...method, all: options.all === true },
        writingContext(context, place, 'fork'),
      ),
    )
    return { report: { ...report, findings: [...elsewhere, ...report.findings] } }
  },
})
