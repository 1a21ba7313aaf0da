import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sarif } from '../../../src/cli/reporters/sarif.js'
import { finding, findingKinds, type FindingId } from '../../../src/model/finding.js'
import type { Report } from '../../../src/model/report.js'
import { emptyReport, metaOf } from '../reports.js'
import { sarifProblems } from './sarif-schema.js'

interface Run {
  readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } }
  readonly originalUriBaseIds?: Readonly<Record<string, { readonly uri: string }>>
  readonly invocations: readonly [{ readonly executionSuccessful: boolean }]
  readonly results: readonly {
    readonly ruleIndex: number
    readonly level: string
    readonly message: { readonly text: string }
    readonly partialFingerprints: Readonly<Record<string, string>>
    readonly locations?: readonly [
      {
        readonly physicalLocation?: {
          readonly artifactLocation: { readonly uri: string; readonly uriBaseId?: string }
          readonly region?: object
        }
      },
    ]
  }[]
}

function runOf(report: Report): Run {
  const log = JSON.parse(sarif.write(report, metaOf())) as { runs: [Run] }
  expect(sarifProblems(log)).toEqual([])
  return log.runs[0]
}

describe('SARIF', () => {
  it('is valid 2.1.0 with every kind of finding as a rule and as a result', () => {
    const ids = Object.keys(findingKinds) as FindingId[]
    const run = runOf(
      emptyReport({
        findings: ids.map((id, index) => finding(id, 'what', { session: 's', path: `file-history/${String(index)}`, offset: index })),
        errors: [{ code: 'EIO', path: '/x y', message: 'bad' }],
        exitCode: 3,
      }),
    )
    expect(run.tool.driver.rules.map(({ id }) => id)).toEqual(ids)
    expect(run.results.map(({ ruleIndex }) => ids[ruleIndex])).toEqual(ids)
    expect(run.invocations[0].executionSuccessful).toBe(false)
  })

  it('maps error, warn, info to error, warning, note and leaves ignored ones out', () => {
    const findings = (['error', 'warn', 'info', 'ignore'] as const).map((severity) => finding('busy', 'x', { severity }))
    expect(runOf(emptyReport({ findings })).results.map(({ level }) => level)).toEqual(['error', 'warning', 'note'])
  })

  it('gives places as percent-encoded paths below the root, with the byte offset', () => {
    const run = runOf(
      emptyReport({
        roots: ['/home/ü ser/.claude'],
        findings: [finding('nul-run', 'x', { path: 'projects/-p é%/a:b#c?.jsonl', offset: 10 })],
      }),
    )
    expect(run.originalUriBaseIds).toEqual({ STORE_ROOT: { uri: 'file:///home/%C3%BC%20ser/.claude/' } })
    expect(run.results[0]?.locations?.[0].physicalLocation).toEqual({
      artifactLocation: { uri: 'projects/-p%20%C3%A9%25/a%3Ab%23c%3F.jsonl', uriBaseId: 'STORE_ROOT' },
      region: { byteOffset: 10 },
    })
  })

  it('does not claim a base for relative paths when there are several roots', () => {
    expect(runOf(emptyReport({ roots: ['/a', '/b'], findings: [finding('busy', 'x', { path: 'p' })] }))).not.toHaveProperty(
      'originalUriBaseIds',
    )
  })

  it('gives the same finding the same fingerprint whatever its words, and another place another one', () => {
    const at = (message: string, offset: number): string | undefined =>
      runOf(emptyReport({ findings: [finding('nul-run', message, { path: 'p', offset })] })).results[0]?.partialFingerprints[
        'rewindAdminFinding/v1'
      ]
    expect(at('one', 1)).toBe(at('other', 1))
    expect(at('one', 1)).not.toBe(at('one', 2))
    expect(at('one', 1)).toMatch(/^[0-9a-f]{32}$/)
  })

  it('lets no name become a placeholder or a link (sections 3.11.5 and 3.11.6)', () => {
    expect(runOf(emptyReport({ findings: [finding('busy', 'a {0} [x](http://e) b')] })).results[0]?.message.text).toBe(
      'a {{0}} \\[x\\](http://e) b',
    )
  })

  it('stays valid whatever names hold', () => {
    const anything = fc.string({ unit: 'binary' })
    fc.assert(
      fc.property(anything, anything, (message, path) => {
        runOf(emptyReport({ findings: [finding('foreign-file', message, { path })], errors: [{ code: 'X', path, message }] }))
      }),
    )
    runOf(emptyReport({ findings: [finding('foreign-file', 'x', { path: 'a\ud800b' })] }))
  })
})
