import { randomUUID } from 'node:crypto'
import type { Store } from '../../formats/format.js'
import { isFields } from '../../model/fields.js'
import type { Report } from '../../model/report.js'
import { rewind } from '../../operations/rewind.js'
import { findSession } from '../../operations/show.js'
import { withLock, writingContext } from '../locked.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { rewindText } from './rewind-text.js'

export const command = defineCommand({
  positionals: {
    session: { type: 'string', demandOption: true, describe: 'A session id or a unique prefix' },
    message: { type: 'string', demandOption: true, describe: 'The message to go back to, by id or unique prefix' },
  },
  options: {
    'scope': { choices: ['code', 'conversation', 'both'] as const, describe: 'What goes back; both where the conversation can, else the code' },
    'file': { type: 'string', array: true, describe: 'Only this file; may be given again' },
    'diff': { type: 'boolean', describe: 'Show the changes as a unified diff' },
    'partial': { type: 'boolean', describe: 'Restore what can be restored although some backups are missing or damaged' },
    'images': { type: 'string', describe: 'Write the pictures of the prompt into this folder' },
    'apply': { type: 'boolean', describe: 'Act; without it nothing is written' },
  },
  async run(context, options) {
    const place = openWorkplace(context)
    const { store, ref, elsewhere } = findSession(place.stores, options.session, context.now())
    const act = (): Promise<Report> =>
      rewind(
        store,
        ref,
        options.message,
        {
          scope: options.scope ?? (store.conversations?.resume === undefined ? 'code' : 'both'),
          ...(options.file === undefined ? {} : { files: options.file }),
          partial: options.partial === true,
          diff: options.diff === true,
          apply: options.apply === true,
          newId: randomUUID(),
          ...(options.images === undefined ? {} : { imagesFolder: options.images }),
        },
        writingContext(context, place, 'rewind'),
      )
    const done = options.apply === true ? await withLock(context, place, store, 'rewind', act) : await act()
    const report = { ...done, findings: [...elsewhere, ...done.findings] }
    const next = nextOf(store, report, options.apply === true)
    return { report: { ...report, ...next }, text: () => ({ body: rewindText(report) }) }
  },
})

function nextOf(store: Store, report: Report, apply: boolean): { readonly next?: string } {
  if (!apply) return { next: 'Run it again with --apply to act.' }
  const conversation = report.extra?.conversation
  const session = isFields(conversation) ? conversation.session : undefined
  const resume = store.conversations?.resume
  return typeof session === 'string' && resume !== undefined ? { next: resume(session) } : {}
}
