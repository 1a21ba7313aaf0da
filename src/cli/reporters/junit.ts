import { findingKinds, isAtLeast, placeText, type Finding } from '../../model/finding.js'
import { groupBy } from '../text/group.js'
import { escapeUnit } from '../text/printable.js'
import { shownFindings, type Reporter } from './reporter.js'

/**
 * JUnit XML: one test case per kind of finding, always all of them, so that a dashboard keeps their history; it fails when there is a
 * finding with severity error, lesser ones are its output. Items that failed are one more test case, `run`, in error.
 */
export const junit: Reporter = {
  write(report, meta) {
    const suite = `rewind-admin ${report.command}`.trim()
    const byId = groupBy(shownFindings(report), (item) => item.id)
    const ids = Object.keys(findingKinds) as (keyof typeof findingKinds)[]
    const cases = ids.map((id) => ({ id, found: byId.get(id) ?? [] }))
    const failures = cases.filter(({ found }) => found.some((item) => item.severity === 'error')).length
    const errors = report.errors.length > 0 ? 1 : 0
    const counts = `tests="${String(cases.length + 1)}" failures="${String(failures)}" errors="${String(errors)}" time="${(meta.durationMs / 1000).toFixed(3)}"`
    const lines = [
      '<?xml version="1.0" encoding="UTF-8"?>',
      `<testsuites name="rewind-admin" ${counts}>`,
      `  <testsuite name="${xml(suite)}" ${counts} skipped="0" timestamp="${new Date(meta.startedAt).toISOString().slice(0, 19)}">`,
      '    <properties>',
      ...[['version', meta.version], ['exitCode', String(report.exitCode)], ...report.roots.map((root) => ['root', root])].map(
        ([name = '', value = '']) => `      <property name="${name}" value="${xml(value)}"/>`,
      ),
      '    </properties>',
      ...cases.flatMap(({ id, found }) => testCase(id, suite, found)),
      ...runCase(
        suite,
        report.errors.map((item) => `${item.code} ${item.path ?? ''} ${item.message}`.replace(/ {2,}/g, ' ')),
      ),
      '  </testsuite>',
      '</testsuites>',
    ]
    return `${lines.join('\n')}\n`
  },
}

function testCase(id: string, suite: string, found: readonly Finding[]): string[] {
  const open = `    <testcase name="${xml(id)}" classname="${xml(suite)}" time="0"`
  if (found.length === 0) return [`${open}/>`]
  const failed = found.filter((item) => isAtLeast(item.severity, 'error'))
  const others = found.filter((item) => !isAtLeast(item.severity, 'error'))
  return [
    `${open}>`,
    ...(failed.length > 0
      ? [
          `      <failure message="${xml(`${String(failed.length)} found: ${failed[0]?.message ?? ''}`)}" type="${xml(id)}">${body(failed)}</failure>`,
        ]
      : []),
    ...(others.length > 0 ? [`      <system-out>${body(others)}</system-out>`] : []),
    '    </testcase>',
  ]
}

function runCase(suite: string, errors: readonly string[]): string[] {
  const open = `    <testcase name="run" classname="${xml(suite)}" time="0"`
  if (errors.length === 0) return [`${open}/>`]
  return [
    `${open}>`,
    `      <error message="${xml(`${String(errors.length)} failed`)}" type="run">${errors.map(xml).join('\n')}</error>`,
    '    </testcase>',
  ]
}

function body(found: readonly Finding[]): string {
  return found
    .map((item) => [item.severity, item.session, item.place === undefined ? undefined : placeText(item.place), item.message])
    .map((parts) => xml(parts.filter((part) => part !== undefined).join(' ')))
    .join('\n')
}

// Everything that XML 1.0 section 2.2 does not allow, and the line ends and tabs that attributes would lose.
const notXml = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufffe\uffff]|\p{Surrogate}/gu
const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&apos;' }

function xml(text: string): string {
  return text.replace(notXml, escapeUnit).replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
