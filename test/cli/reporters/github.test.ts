import { expect, it } from 'vitest'
import { github } from '../../../src/cli/reporters/github.js'
import { finding } from '../../../src/model/finding.js'
import { emptyReport, metaOf } from '../reports.js'

it('escapes %, CR and LF in words, and : and , in properties as well', () => {
  const report = emptyReport({
    findings: [
      finding('missing-backup', '100%: a,b\r\nnext', { session: 's1', path: 'a,b:c%/x', offset: 4 }),
      finding('wide-mode', 'open', { severity: 'warn' }),
      finding('busy', 'changed', { session: 's2', remedy: 'wait' }),
      finding('busy', 'hidden', { severity: 'ignore' }),
    ],
    errors: [{ code: 'EIO', path: '/p', message: 'bad' }],
  })
  expect(github.write(report, metaOf())).toBe(
    [
      '::error file=/home/u/.claude/a%2Cb%3Ac%25/x,title=rewind-admin missing-backup::100%25: a,b%0D%0Anext (a,b:c%25/x#4)%0ARemedy: rewind-admin repair',
      '::warning title=rewind-admin wide-mode::open%0ARemedy: chmod 700 the file-history folder',
      '::notice title=rewind-admin busy::changed (s2)%0ARemedy: wait',
      '::error file=/p,title=rewind-admin EIO::bad',
      'rewind-admin 9.8.7 verify: 2 errors, 1 warning, 1 notice',
      '',
    ].join('\n'),
  )
})

it('lets no other control character through, so that a name cannot drive the terminal of a log', () => {
  const out = github.write(emptyReport({ findings: [finding('foreign-file', 'a\u001b[2Jb', { path: 'p\u0000q' })] }), metaOf())
  expect(out).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
  expect(out).toContain('a\\u001b[2Jb')
})
