import { readFileSync } from 'node:fs'
import { UsageError } from '../../model/errors.js'
import { isFields, textOf } from '../../model/fields.js'
import { isFindingId, type FindingId, type Severity } from '../../model/finding.js'
import type { Report } from '../../model/report.js'
import { fingerprint } from '../../operations/verify/options.js'
import { parseSample } from '../../operations/verify/sample.js'
import { verify } from '../../operations/verify/verify.js'
import { withLocks } from '../locked.js'
import { bytesText, countText } from '../text/units.js'
import { narrowTo, openWorkplace, sessionProgress, verifyThreads } from '../workplace.js'
import { defineCommand, formatOption } from './command.js'
import { filePath, projectPath } from './paths.js'
import { shellQuoted } from '../../model/shell-word.js'

const severities = ['error', 'warn', 'info', 'ignore'] as const satisfies readonly Severity[]

export const command = defineCommand({
  positionals: {
    session: { type: 'string', array: true, describe: 'Session ids or unique prefixes; none means all' },
  },
  options: {
    ...formatOption,
    'project': { type: 'string', describe: 'Only sessions that were started in this folder' },
    'quick': { type: 'boolean', describe: 'Metadata only; sealed backups that nobody wrote to are taken as good' },
    'seal': { type: 'boolean', describe: 'Remember the digest of every backup, in our own folder beside the store' },
    'sample': { type: 'string', describe: 'Read only bucket n/t, a share x%, or up to a size of the backups' },
    'fail-on': { choices: ['error', 'warn', 'info'] as const, default: 'error', describe: 'The severity from which on the exit code is 1' },
    'severity': { type: 'string', array: true, describe: 'Change the severity of a finding: id=error|warn|info|ignore' },
    'baseline': { type: 'string', describe: 'A JSON report of verify; what is in it is accepted' },
    'max-errors': { type: 'number', describe: 'Stop when so many errors were found' },
    'require-checkpoints': { type: 'boolean', describe: 'A session without checkpoints is an error' },
  },
  async run(context, options) {
    const place = narrowTo(openWorkplace(context), options.session, context.now())
    const { stores, machine } = place
    const act = (): Promise<Report> =>
      verify(
        stores,
        {
          sessions: options.session ?? [],
          ...(options.project === undefined ? {} : { project: projectPath(context, options.project) }),
          quick: options.quick === true,
          seal: options.seal === true,
          ...(options.sample === undefined ? {} : { sample: parseSample(options.sample) }),
          failOn: options.failOn,
          severities: readSeverities(options.severity ?? []),
          ...(options.baseline === undefined ? {} : { baseline: readBaseline(filePath(context, options.baseline)) }),
          ...(options.maxErrors === undefined ? {} : { maxErrors: positive('--max-errors', options.maxErrors) }),
          requireCheckpoints: options.requireCheckpoints === true,
        },
        {
          now: context.now(),
          machine,
          random: () => Math.random(),
          threads: verifyThreads(),
          signal: context.signal,
          progress: sessionProgress(context, 'verify'),
        },
      )
    // Seals are written into our own folder: one run at a time.
    const report = options.seal === true ? await withLocks(context, place, 'verify --seal', act) : await act()
    const next = report.next === undefined ? {} : { next: withRoots(report.next, context.globals.roots) }
    // What was passed over says nothing about what was verified: the exit code stays.
    return { report: { ...report, findings: [...place.elsewhere, ...report.findings], ...next }, text: () => ({ closing: closingText(report.summary) }) }
  },
})

/** A command line for the same stores as this one. */
function withRoots(line: string, roots: readonly string[]): string {
  return [line, ...roots.map((root) => `--root ${shellQuoted(root)}`)].join(' ')
}

function closingText(summary: Readonly<Record<string, unknown>>): string {
  const number = (name: string): number => Number(summary[name])
  const looked = `${countText(number('sessions'), 'session')}, ${countText(number('checkpoints'), 'checkpoint')}, ${countText(number('backups'), 'backup')} (${bytesText(number('bytes'))})`
  const content = `${number('digested').toString()} read, ${number('sealed').toString()} sealed, ${number('proven').toString()} proven by the transcript`
  const found = `${countText(number('errors'), 'error')}, ${countText(number('warnings'), 'warning')}, ${number('information').toString()} for information`
  const accepted = number('accepted') > 0 ? `, ${number('accepted').toString()} accepted by the baseline` : ''
  const stopped = summary.complete === false ? 'Stopped early: not everything was looked at.\n' : ''
  return `${looked}\n${content}\n${found}${accepted}\n${stopped}`
}

function readSeverities(given: readonly string[]): Map<FindingId, Severity> {
  return new Map(
    given.map((text): [FindingId, Severity] => {
      const [id = '', word = ''] = text.split('=', 2)
      const severity = severities.find((known) => known === word)
      if (!isFindingId(id)) throw new UsageError(`--severity ${text}: there is no finding called ${id}`)
      if (severity === undefined) throw new UsageError(`--severity ${text}: give ${severities.join(', ')} after the equals sign`)
      return [id, severity]
    }),
  )
}

/** Findings of an earlier report: the JSON envelope, a list of findings, or one finding a line. Throws `UsageError`. */
function readBaseline(file: string): Set<string> {
  const known = new Set<string>()
  for (const found of findingsIn(file)) {
    const id = textOf(found.id) ?? ''
    if (!isFindingId(id)) continue
    const session = textOf(found.session)
    // A place is the path, and an offset that may move; paths may hold the sign before the offset themselves.
    const path = textOf(found.place)?.replace(/#[0-9]+$/, '')
    known.add(fingerprint({ id, ...(session === undefined ? {} : { session }), ...(path === undefined ? {} : { place: { path } }) }))
  }
  return known
}

function findingsIn(file: string): Readonly<Record<string, unknown>>[] {
  const hint = 'make one with: rewind-admin verify --format json > baseline.json'
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`the baseline ${file} cannot be read`, { cause: error, hint })
  }
  try {
    const value: unknown = JSON.parse(text)
    const list = isFields(value) ? value.findings : value
    if (Array.isArray(list)) return list.filter(isFields)
  } catch {
    const lines = text.split('\n').filter((line) => line.trim() !== '')
    try {
      return lines.map((line): unknown => JSON.parse(line)).filter(isFields)
    } catch (error) {
      throw new UsageError(`the baseline ${file} is not JSON`, { cause: error, hint })
    }
  }
  throw new UsageError(`the baseline ${file} holds no findings`, { hint })
}

function positive(option: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new UsageError(`${option} must be a whole number above 0`)
}
