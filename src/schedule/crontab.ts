import { blockOf, ownLines, withEntries } from './crontab-text.js'
import { labelledEntries } from './entry.js'
import { programTimeout, saidBy, SchedulerError } from './program.js'
import type { ScheduleHost, Scheduler } from './scheduler.js'

/** The user's crontab, through the crontab program alone. */
export const crontab: Scheduler = {
  name: 'cron',

  async unavailable(host) {
    if (host.platform === 'win32' || host.platform === 'darwin') return 'cron is not used on this system'
    try {
      return (await read(host)) === 'no program' ? 'there is no crontab program' : undefined
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  },

  async installed(host) {
    if (host.platform === 'win32' || host.platform === 'darwin') return []
    const found = await read(host)
    if (found === 'no program') return []
    const own = ownLines(found.bytes)
    const entries = labelledEntries(own)
    const changed = own !== (entries.length === 0 ? '' : blockOf(entries))
    return entries.map((entry) => ({ scheduler: 'cron', entry, where: 'crontab', active: undefined, changed }))
  },

  async write(entries, host) {
    const found = await read(host)
    if (found === 'no program') {
      if (entries.length === 0) return
      throw new SchedulerError('there is no crontab program; nothing was changed')
    }
    const wanted = withEntries(found.bytes, entries)
    if (wanted.equals(found.bytes)) return
    await replace(wanted, host, 'nothing was changed')
    const after = await read(host)
    if (after !== 'no program' && after.bytes.equals(wanted)) return
    // What it holds now is not what it was given: then it shall hold what it held before.
    await replace(found.bytes, host, `it may have lost lines; what it held before was:\n${found.bytes.toString('utf8')}`)
    throw new SchedulerError('crontab does not hold what it was given; the old one was put back')
  },

  render: (entries) => [{ path: 'crontab', text: entries.length === 0 ? '' : blockOf(entries) }],
}

/**
 * The bytes of the crontab; none yet is an empty one. Anything else that keeps it from being read is an error: to write a
 * crontab that could not be read would take away the lines in it.
 */
async function read(host: ScheduleHost): Promise<'no program' | { readonly bytes: Buffer }> {
  const end = await host.run('crontab', ['-l'], { timeoutMs: programTimeout })
  if (end.code === 0) return { bytes: end.stdout }
  if (end.failure === 'ENOENT') return 'no program'
  const none = /\bno crontab for\b|can't open '[^']*': No such file/i.test(end.stderr) && end.stdout.length === 0
  if (end.code !== undefined && none) return { bytes: Buffer.alloc(0) }
  throw new SchedulerError(`the crontab cannot be read (${saidBy(end)}); nothing was changed`, { hint: 'crontab -l shows why' })
}

async function replace(bytes: Buffer, host: ScheduleHost, kept: string): Promise<void> {
  const remove = bytes.length === 0
  const end = await host.run('crontab', [remove ? '-r' : '-'], { timeoutMs: programTimeout, ...(remove ? {} : { input: bytes }) })
  if (end.code !== 0) throw new SchedulerError(`crontab refused (${saidBy(end)}); ${kept}`, { hint: 'crontab -l shows what it holds' })
}
