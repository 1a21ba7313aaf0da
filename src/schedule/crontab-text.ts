import { UsageError } from '../model/errors.js'
import { labelOf, type ScheduledEntry } from './entry.js'
import { shellQuoted } from '../model/shell-word.js'

const begin = '# BEGIN rewind-admin schedule'
const end = '# END rewind-admin schedule'
/** The line of a job, also when its time was changed or it was commented out. */
const tag = /^(?:# ?)?(?:[0-9*,/-]+ ){5}.* # rewind-admin schedule: [a-z0-9-]+$/
const label = /^# rewind-admin-entry:[A-Za-z0-9+/=]+$/

/** Classic cron cuts a command off after this many bytes. */
const commandLimit = 998

/**
 * A crontab with these entries in it instead of the ones that were; every other byte stays as and where it was. What is ours is
 * known line by line, not by where a block begins and ends: a marker that is missing or doubled, or a line of the user inside
 * the block, costs nobody a line. The bytes are taken one character each, so that none can be lost in a decoding.
 */
export function withEntries(crontab: Buffer, entries: readonly ScheduledEntry[]): Buffer {
  const lines = linesOf(crontab)
  const first = lines.findIndex(isOurs)
  const before = lines.slice(0, first < 0 ? lines.length : first)
  const after = first < 0 ? [] : lines.slice(first).filter((line) => !isOurs(line))
  const block = entries.length === 0 ? '' : blockOf(entries)
  const open = before.at(-1)
  // A last line without its end would run into ours.
  const separator = block !== '' && open !== undefined && !open.endsWith('\n') ? '\n' : ''
  return Buffer.concat([Buffer.from(`${before.join('')}${separator}`, 'latin1'), Buffer.from(block), Buffer.from(after.join(''), 'latin1')])
}

/** The lines of our block, each with its end. */
export function blockOf(entries: readonly ScheduledEntry[]): string {
  const lines = entries.flatMap((entry) => [`# ${labelOf(entry)}`, cronLine(entry)])
  return [begin, ...lines, end].map((line) => `${line}\n`).join('')
}

/** Our lines of a crontab as UTF-8 text. */
export function ownLines(crontab: Buffer): string {
  return Buffer.from(linesOf(crontab).filter(isOurs).join(''), 'latin1').toString('utf8')
}

/**
 * The line of one entry. The shell gets every word in single quotes; a percent sign, which cron would turn into a line end, gets
 * a backslash that cron takes away again.
 * @throws UsageError when cron would cut it off
 */
export function cronLine({ calendar, command, environment, job }: ScheduledEntry): string {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${quoted(value)} `)
  const words = `${variables.join('')}${command.map(quoted).join(' ')}`.replaceAll('%', '\\%')
  const line = `${words} # rewind-admin schedule: ${job}`
  if (Buffer.byteLength(line) > commandLimit) {
    throw new UsageError(`the command is too long for a crontab (${String(Buffer.byteLength(line))} bytes)`, {
      hint: 'put the roots into the configuration, or choose another --scheduler',
    })
  }
  return `${calendar.expression} ${line}`
}

function quoted(word: string): string {
  return /^[A-Za-z0-9_/.,:=@+-]+$/.test(word) ? word : shellQuoted(word)
}

function isOurs(line: string): boolean {
  const bare = line.replace(/\r?\n$/, '')
  return bare === begin || bare === end || label.test(bare) || tag.test(bare)
}

/** Lines with their ends, one character per byte. */
function linesOf(crontab: Buffer): string[] {
  return crontab.toString('latin1').match(/[^\n]*\n|[^\n]+$/g) ?? []
}
