import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { junit } from '../../../src/cli/reporters/junit.js'
import { finding, findingKinds } from '../../../src/model/finding.js'
import type { Report } from '../../../src/model/report.js'
import { emptyReport, metaOf } from '../reports.js'
import { parseXml, type Element } from './xml.js'

const kinds = Object.keys(findingKinds).length

function suiteOf(report: Report): Element {
  const root = parseXml(junit.write(report, metaOf()))
  expect(root.name).toBe('testsuites')
  const [suite] = root.children
  if (suite === undefined) throw new Error('no suite')
  return suite
}

function caseNamed(suite: Element, name: string): Element | undefined {
  return suite.children.find((child) => child.name === 'testcase' && child.attributes.name === name)
}

describe('JUnit', () => {
  it('has one test case per kind of finding and one for the run, and all pass on a good store', () => {
    const suite = suiteOf(emptyReport())
    expect(suite.attributes).toMatchObject({
      name: 'rewind-admin verify',
      tests: String(kinds + 1),
      failures: '0',
      errors: '0',
      skipped: '0',
      time: '1.500',
      timestamp: '2026-01-31T04:00:00',
    })
    const cases = suite.children.filter((child) => child.name === 'testcase')
    expect(cases).toHaveLength(kinds + 1)
    expect(cases.every((child) => child.children.length === 0 && child.attributes.classname === 'rewind-admin verify')).toBe(true)
  })

  it('fails only the kinds that have errors; warnings and informations are output', () => {
    const suite = suiteOf(
      emptyReport({
        findings: [
          finding('missing-backup', 'one', { session: 's1', path: 'p', offset: 3 }),
          finding('missing-backup', 'two', { session: 's2', severity: 'warn' }),
          finding('busy', 'moving', { session: 's3' }),
          finding('wide-mode', 'unseen', { severity: 'ignore' }),
        ],
        errors: [{ code: 'EIO', path: 'x', message: 'bad' }],
      }),
    )
    expect(suite.attributes).toMatchObject({ failures: '1', errors: '1' })
    expect(caseNamed(suite, 'missing-backup')?.children.map(({ name, text }) => [name, text])).toEqual([
      ['failure', 'error s1 p#3 one'],
      ['system-out', 'warn s2 two'],
    ])
    expect(caseNamed(suite, 'busy')?.children.map(({ name, text }) => [name, text])).toEqual([['system-out', 'info s3 moving']])
    expect(caseNamed(suite, 'wide-mode')?.children).toEqual([])
    expect(caseNamed(suite, 'run')?.children.map(({ name, text }) => [name, text])).toEqual([['error', 'EIO x bad']])
  })

  it('is well-formed XML 1.0 whatever names and messages hold', () => {
    const anything = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(anything, anything, anything, (message, path, session) => {
        const suite = suiteOf(
          emptyReport({
            roots: [path],
            findings: [finding('missing-backup', message, { session, path })],
            errors: [{ code: session, message, path }],
          }),
        )
        expect(caseNamed(suite, 'missing-backup')?.children).toHaveLength(1)
      }),
    )
    const hostile = suiteOf(emptyReport({ findings: [finding('missing-backup', ']]><x a="1">&amp;\u0000\ud800\uffff\u001b')] }))
    expect(caseNamed(hostile, 'missing-backup')?.children[0]?.text).toBe('error ]]><x a="1">&amp;\\u0000\\ud800\\uffff\\u001b')
  })
})
