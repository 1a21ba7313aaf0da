import { describe, expect, it } from 'vitest'
import { text } from '../../../src/cli/reporters/text.js'
import { finding } from '../../../src/model/finding.js'
import { emptyReport, metaOf } from '../reports.js'

describe('the text report', () => {
  it('groups findings by session, errors first, and ends with the command that repairs', () => {
    const report = emptyReport({
      findings: [
        finding('foreign-file', 'odd name', { path: 'file-history/x' }),
        finding('over-cap', '120 checkpoints', { session: 's1' }),
        finding('missing-backup', 'aaaa@v2 is gone', { session: 's1', path: 'projects/-p/s1.jsonl', offset: 7 }),
      ],
      next: 'rewind-admin repair --apply',
    })
    expect(text.write(report, metaOf())).toBe(`store
  info   foreign-file: odd name
         at file-history/x

session s1
  error  missing-backup: aaaa@v2 is gone
         at projects/-p/s1.jsonl#7
  info   over-cap: 120 checkpoints

What mends it
  over-cap        rewind-admin cap
  missing-backup  rewind-admin repair

rewind-admin repair --apply
`)
  })

  it('says that a plan is a preview, with its sum', () => {
    const plan = [
      { action: 'trash', path: 'projects/-p/s1.jsonl', session: 's1', bytes: 1500, reason: 'older than 30 days' },
      { action: 'trash', path: 'file-history/s1', session: 's1', bytes: 2_000_000, reason: 'older than 30 days' },
    ]
    const preview = text.write(emptyReport({ plan }), metaOf())
    expect(preview.split('\n').slice(0, 4)).toEqual([
      'Plan: 2 actions, 2.0 MB; a preview, nothing was changed',
      '  action    size  path                  reason',
      '  trash   1.5 kB  projects/-p/s1.jsonl  older than 30 days',
      '  trash   2.0 MB  file-history/s1       older than 30 days',
    ])
    expect(text.write(emptyReport({ plan, applied: true }), metaOf())).toContain('Done: 2 actions, 2.0 MB\n')
  })

  it('names sessions in a column of their own when a path does not', () => {
    const plan = [{ action: 'replace', path: 'history.jsonl', session: 's1', bytes: 20, reason: 'one line' }]
    expect(text.write(emptyReport({ plan }), metaOf()).split('\n').slice(1, 3)).toEqual([
      '  action   session  size  path           reason',
      '  replace  s1       20 B  history.jsonl  one line',
    ])
  })

  it('lists a hundred actions and five reasons, and says how many more there are; all of them with --verbose', () => {
    const plan = Array.from({ length: 103 }, (_, index) => ({ action: 'trash', path: `file-history/s${String(index)}`, session: `s${String(index)}`, bytes: 1, reason: 'old' }))
    const kept = Array.from({ length: 7 }, (_, index) => ({ session: `k${String(index)}`, reason: `reason ${String(index)}` }))
    const short = text.write(emptyReport({ plan, kept }), metaOf())
    expect(short).toContain('file-history/s99 ')
    expect(short).not.toContain('file-history/s100')
    expect(short).toContain('  and 3 more; --verbose lists them\n')
    expect(short).toContain('  reason 4: k4\n  and 2 more; --verbose lists them\n')
    const long = text.write(emptyReport({ plan, kept }), metaOf({ verbose: true }))
    expect(long).toContain('file-history/s102')
    expect(long).toContain('reason 6: k6')
    expect(long).not.toContain('more;')
  })

  it('counts kept sessions of one reason, and names all of them with --verbose', () => {
    const kept = ['a', 'b', 'c', 'd'].map((session) => ({ session, reason: 'younger than 30 days' }))
    expect(text.write(emptyReport({ kept }), metaOf())).toBe('Kept: 4 sessions\n  younger than 30 days: a, b, c and 1 more\n')
    expect(text.write(emptyReport({ kept }), metaOf({ verbose: true }))).toBe('Kept: 4 sessions\n  younger than 30 days: a, b, c, d\n')
  })

  it('with --quiet leaves only problems', () => {
    const report = emptyReport({
      findings: [finding('over-cap', 'many', { session: 's1' }), finding('wide-mode', 'open to others', { severity: 'warn' })],
      kept: [{ session: 's1', reason: 'live' }],
      summary: { sessions: 1 },
    })
    const quiet = text.write(report, metaOf({ quiet: true }))
    expect(quiet).toContain('wide-mode')
    expect(quiet).not.toMatch(/over-cap|Kept|sessions/)
  })

  it('prints the summary in words when the command has no text of its own', () => {
    expect(text.write(emptyReport({ summary: { damagedLines: 3, source: 'user' } }), metaOf())).toBe(
      'damaged lines  3\nsource         user\n',
    )
    expect(text.write(emptyReport({ summary: { damagedLines: 3 } }), metaOf({ text: { body: 'own\n' } }))).toBe('own\n')
  })

  it('never lets a control character of the store reach the terminal', () => {
    const evil = 'x\u001b]0;owned\u0007\r\n\u009b31m\u202etxt'
    const out = text.write(
      emptyReport({
        findings: [finding('foreign-file', evil, { session: evil, path: evil, remedy: evil })],
        plan: [{ action: evil, path: evil, session: evil, bytes: 1, reason: evil }],
        kept: [{ session: evil, reason: evil }],
        errors: [{ code: evil, path: evil, message: evil }],
        summary: { evil },
        next: evil,
      }),
      metaOf(),
    )
    expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(out).toContain('x\\u001b]0;owned\\u0007\\u000d\\u000a\\u009b31m\\u202etxt')
  })

  it('colours the severity word and nothing else', () => {
    const report = emptyReport({ findings: [finding('missing-backup', 'gone', { session: 's1' })] })
    const coloured = text.write(report, metaOf({ style: { colour: true, width: 80 } }))
    expect(coloured).toContain('  \u001b[31merror\u001b[0m  missing-backup')
    expect(coloured.replace('\u001b[31m', '').replace('\u001b[0m', '')).toBe(text.write(report, metaOf()))
  })
})
