import { posix } from 'node:path'
import { placeText, type Finding, type Severity } from '../../model/finding.js'
import { printable } from '../text/printable.js'
import { countText } from '../text/units.js'
import { countOf, shownFindings, type Reporter } from './reporter.js'

const commands: Record<Exclude<Severity, 'ignore'>, string> = { error: 'error', warn: 'warning', info: 'notice' }

/**
 * Workflow commands of GitHub Actions: an annotation per finding and error, then a line of counts. `%`, CR and LF are escaped in
 * values, `:` and `,` in properties as well, as GitHub documents it. Annotations know lines only, so the byte offset is in the words.
 */
export const github: Reporter = {
  write(report, meta) {
    const findings = shownFindings(report)
    const root = report.roots.length === 1 ? report.roots[0] : undefined
    const counts = [
      countText(countOf(findings, 'error') + report.errors.length, 'error'),
      countText(countOf(findings, 'warn'), 'warning'),
      countText(countOf(findings, 'info'), 'notice'),
    ]
    return [
      ...findings.map((item) => annotation(item, root)),
      ...report.errors.map((item) =>
        command('error', { ...(item.path === undefined ? {} : { file: item.path }), title: `rewind-admin ${item.code}` }, item.message),
      ),
      `rewind-admin ${meta.version} ${report.command}: ${counts.join(', ')}\n`,
    ].join('')
  },
}

function annotation(item: Finding, root: string | undefined): string {
  const { place, session, severity } = item
  const file = place === undefined ? undefined : root === undefined ? place.path : posix.resolve(root, place.path)
  const where = place === undefined ? session : placeText(place)
  const words = [
    where === undefined ? item.message : `${item.message} (${where})`,
    ...(item.remedy === undefined ? [] : [`Remedy: ${item.remedy}`]),
  ]
  return command(
    commands[severity === 'ignore' ? 'info' : severity],
    { ...(file === undefined ? {} : { file }), title: `rewind-admin ${item.id}` },
    words.join('\n'),
  )
}

function command(name: string, properties: Readonly<Record<string, string>>, message: string): string {
  const pairs = Object.entries(properties).map(([key, value]) => `${key}=${escapeProperty(value)}`)
  return `::${name} ${pairs.join(',')}::${escapeData(message)}\n`
}

function escapeData(text: string): string {
  const safe = text.replace(/[^\r\n]+/g, printable)
  return safe.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C')
}
