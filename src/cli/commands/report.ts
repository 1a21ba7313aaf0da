import { randomBytes } from 'node:crypto'
import { nightly } from '../../../jobs/nightly.js'
import { atomicWrite } from '../../fs/atomic-write.js'
import { pathProbe } from '../../fs/path-probe.js'
import { UsageError, systemErrorCode } from '../../model/errors.js'
import { reportOn } from '../../operations/report/report.js'
import { newRunId, newToken } from '../../plan/run-id.js'
import { reportPage } from '../html/page.js'
import { printable } from '../text/printable.js'
import { readVersion } from '../version.js'
import { lockOwner, openWorkplace, sessionProgress, verifyThreads } from '../workplace.js'
import { defineCommand } from './command.js'
import { filePath } from './paths.js'
import { reportText } from './report-text.js'

export const command = defineCommand({
  positionals: {},
  options: {
    html: { type: 'string', describe: 'Write a page for people to this file' },
    top: { type: 'number', default: 10, describe: 'How many projects, sessions and files the text names' },
  },
  async run(context, { html, top }) {
    const { stores, config, machine } = openWorkplace(context)
    const now = context.now()
    const { report, stores: facts } = await reportOn(stores, nightly, {
      runId: newRunId(now, randomBytes(4).toString('hex')),
      config,
      lock: lockOwner(machine),
      now,
      monotonic: () => context.monotonic(),
      machine,
      probe: pathProbe,
      random: () => Math.random(),
      threads: verifyThreads(),
      signal: context.signal,
      progress: sessionProgress(context, 'report'),
    })
    if (html === undefined) return { report, text: () => ({ body: reportText(facts, top) }) }
    const file = filePath(context, html)
    writePage(file, reportPage(facts, { version: readVersion(), now }))
    return {
      report: { ...report, extra: { ...report.extra, html: file } },
      text: () => ({ body: reportText(facts, top), closing: `The page is in ${printable(file)}\n` }),
    }
  },
})

/** The page names projects and files, so only its owner can read it. */
function writePage(file: string, page: string): void {
  try {
    atomicWrite(file, Buffer.from(page), { token: newToken() })
  } catch (error) {
    const code = systemErrorCode(error)
    if (code !== 'ENOENT' && code !== 'ENOTDIR' && code !== 'EISDIR' && code !== 'EACCES') throw error
    throw new UsageError(`the page cannot be written to ${file} (${code})`, { cause: error, hint: 'name a file in a folder that exists and can be written' })
  }
}
