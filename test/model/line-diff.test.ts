import { describe, expect, it } from 'vitest'
import { decodeText, lineStats, unifiedPatch } from '../../src/model/line-diff.js'

describe('lines that a change adds and takes', () => {
  it.each([
    ['', '', 0, 0],
    ['', 'a\nb\n', 2, 0],
    ['a\nb\n', '', 0, 2],
    ['a\nb\nc\n', 'a\nx\nc\n', 1, 1],
    ['a\nb\nc\n', 'a\nc\n', 0, 1],
    ['a', 'a\n', 1, 1],
    ['a\r\nb\r\n', 'a\nb\n', 2, 2],
    ['a\u2028b\n', 'a\u2028c\n', 1, 1],
    ['a\na\na\n', 'a\na\n', 0, 1],
    ['1\n2\n3\n4\n5\n', '2\n3\n9\n5\n1\n', 2, 2],
  ])('%j to %j: as git diff --numstat counts', (before, after, insertions, deletions) => {
    expect(lineStats(before, after)).toEqual({ insertions, deletions, exact: true })
  })

  it('texts without a common line beyond the limit are counted whole, and said not to be exact', () => {
    const lines = (word: string): string => Array.from({ length: 5000 }, (_, index) => `${word}${String(index)}\n`).join('')
    expect(lineStats(`same\n${lines('a')}`, `same\n${lines('b')}`)).toEqual({ insertions: 5000, deletions: 5000, exact: false })
  })
})

describe('text or binary', () => {
  it('R53: a NUL in the first 8000 bytes or bytes that are not UTF-8 are binary', () => {
    expect(decodeText(Buffer.from('a\0b'))).toBeUndefined()
    expect(decodeText(Buffer.from([0xe9]))).toBeUndefined()
    expect(decodeText(Buffer.concat([Buffer.alloc(8000, 'a'), Buffer.from([0])]))).toHaveLength(8001)
  })

  it('a BOM and CRLF stay in the text', () => {
    expect(decodeText(Buffer.from('\uFEFFa\r\n'))).toBe('\uFEFFa\r\n')
  })
})

describe('unified diff', () => {
  const text = (content: string, mode = 0o644): { kind: 'text'; text: string; mode: number } => ({ kind: 'text', text: content, mode })

  it('of changed lines', () => {
    expect(unifiedPatch('src/a', text('a\nb\n'), text('a\nc\n'))).toBe(
      'diff --git a/src/a b/src/a\n--- a/src/a\n+++ b/src/a\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n',
    )
  })

  it('of a file that goes and one that comes', () => {
    expect(unifiedPatch('a', text('x\n', 0o755), { kind: 'absent' })).toBe(
      'diff --git a/a b/a\ndeleted file mode 100755\n--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-x\n',
    )
    expect(unifiedPatch('a', { kind: 'absent' }, text('x'))).toBe(
      'diff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n',
    )
  })

  it('of a mode alone', () => {
    expect(unifiedPatch('a', text('x\n'), text('x\n', 0o755))).toBe('diff --git a/a b/a\nold mode 100644\nnew mode 100755\n')
  })

  it('of binary files', () => {
    expect(unifiedPatch('a', { kind: 'binary', mode: 0o644 }, text('x\n'))).toBe('diff --git a/a b/a\nBinary files a/a and b/a differ\n')
  })

  it('control characters in names are escaped', () => {
    const patch = unifiedPatch('a\u001b[2J\n', text('a\n'), text('b\n'))
    expect(patch).not.toContain('\u001b')
    expect(patch.split('\n')).toHaveLength(7)
    expect(unifiedPatch('a\u001b[2J\n', { kind: 'binary', mode: 0o644 }, { kind: 'absent' })).not.toContain('\u001b')
  })
})
