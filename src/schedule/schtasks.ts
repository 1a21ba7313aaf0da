import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { atomicWrite } from '../fs/atomic-write.js'
import { labelledEntries, type ScheduledEntry } from './entry.js'
import { programTimeout, saidBy, SchedulerError, type ProgramEnd } from './program.js'
import type { ScheduleHost, Scheduler } from './scheduler.js'
import { taskXml } from './schtasks-xml.js'
import { stateFolder } from './state-folder.js'

const folder = '\\rewind-admin\\'

/** Tasks of the user in the Task Scheduler of Windows. */
export const schtasks: Scheduler = {
  name: 'schtasks',

  async unavailable(host) {
    if (host.platform !== 'win32') return 'Windows tasks are for Windows'
    const end = await call(host, '/query', '/fo', 'csv', '/nh')
    return end.code === 0 ? undefined : `the Task Scheduler does not answer (${saidBy(end)})`
  },

  async installed(host) {
    if (host.platform !== 'win32') return []
    const found = await tasks(host)
    return found.flatMap(({ name, text }) =>
      labelledEntries(text)
        .slice(0, 1)
        .map((entry) => ({ scheduler: 'schtasks' as const, entry, where: name, active: !text.includes('<Enabled>false</Enabled>'), changed: !sameCommand(text, entry) })),
    )
  },

  async write(entries, host) {
    if (host.platform !== 'win32') return
    const before = await schtasks.installed(host)
    for (const { where, entry } of before) {
      if (!entries.some(({ job }) => job === entry.job)) await remove(where, host)
    }
    for (const entry of entries) {
      const end = await create(entry, host)
      if (end.code === 0) continue
      for (const { job } of entries) if (!before.some((old) => old.entry.job === job)) await call(host, '/delete', '/tn', nameOf(job), '/f')
      for (const old of before) await create(old.entry, host)
      throw new SchedulerError(`the Task Scheduler refused ${nameOf(entry.job)} (${saidBy(end)}); its tasks are as they were`)
    }
  },

  render: (entries) => entries.map((entry) => ({ path: nameOf(entry.job), text: taskXml(entry) })),
}

function nameOf(job: string): string {
  return `${folder}${job}`
}

/** Every task in our folder with its definition. The first column of the list is the one that no language changes. */
async function tasks(host: ScheduleHost): Promise<{ readonly name: string; readonly text: string }[]> {
  const list = await call(host, '/query', '/fo', 'csv', '/nh')
  if (list.code !== 0) throw new SchedulerError(`the Task Scheduler does not answer (${saidBy(list)}); nothing was changed`)
  const names = [...list.stdout.toString('utf8').matchAll(/^"(\\rewind-admin\\[a-z0-9-]+)"/gm)].map(([, name = '']) => name)
  const found: { name: string; text: string }[] = []
  for (const name of new Set(names)) {
    const end = await call(host, '/query', '/tn', name, '/xml')
    // UTF-16 or not: all that is looked for is plain letters.
    if (end.code === 0) found.push({ name, text: end.stdout.toString('latin1').replaceAll('\0', '') })
  }
  return found
}

/** The Task Scheduler writes the definition anew in its own way; the program and its words are compared, letters beyond ASCII left out. */
function sameCommand(text: string, entry: ScheduledEntry): boolean {
  const plain = (xml: string): string | undefined =>
    /<Command>[\s\S]*<\/Arguments>/
      .exec(xml)?.[0]
      .replaceAll('&quot;', '"')
      .replace(/>\s+</g, '><')
      .replace(/[^ -~]+/g, '')
  return plain(text) === plain(taskXml(entry))
}

async function create(entry: ScheduledEntry, host: ScheduleHost): Promise<ProgramEnd> {
  const file = join(stateFolder(host), `task-${host.token()}.xml`)
  mkdirSync(stateFolder(host), { recursive: true, mode: 0o700 })
  try {
    atomicWrite(file, Buffer.from(`\ufeff${taskXml(entry)}`, 'utf16le'), { token: host.token() })
    return await call(host, '/create', '/tn', nameOf(entry.job), '/xml', file, '/f')
  } finally {
    rmSync(file, { force: true })
  }
}

async function remove(name: string, host: ScheduleHost): Promise<void> {
  const end = await call(host, '/delete', '/tn', name, '/f')
  if (end.code !== 0) throw new SchedulerError(`the task ${name} could not be removed (${saidBy(end)})`)
}

function call(host: ScheduleHost, ...words: string[]): Promise<ProgramEnd> {
  return host.run('schtasks', words, { timeoutMs: programTimeout })
}
