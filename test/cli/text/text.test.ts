import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printable } from '../../../src/cli/text/printable.js'
import { table } from '../../../src/cli/text/table.js'
import { bytesText, countText, durationText, shareText } from '../../../src/cli/text/units.js'
import { clip, displayWidth, padEnd } from '../../../src/cli/text/width.js'

describe('width of text', () => {
  it.each([
    ['plain', 5],
    ['', 0],
    ['日本語', 6],
    ['한국', 4],
    ['ｆｕ', 4],
    ['é', 1],
    ['e\u0301', 1],
    ['\u200b', 0],
    ['👍', 2],
    ['👩‍👩‍👧', 2],
    ['❤️', 2],
    ['🇩🇪', 2],
    ['a日b', 4],
    ['ａ', 2],
    ['½', 1],
    // By hand from Unicode's tables: East Asian Width, general category, emoji presentation.
    ['名前.txt', 8],
    ['ﾊﾝｶｸ', 4],
    ['か\u3099', 2],
    ['한', 2],
    ['\u1112\u1161\u11ab', 2],
    ['〈x〉', 5],
    ['\u2329', 2],
    ['①', 1],
    ['㉈', 1],
    ['㉐', 2],
    ['𠮷', 2],
    ['\u00ad', 1],
    ['n\u0303o', 2],
    ['a\u20dd', 1],
    ['กำ', 2],
    ['กี่', 1],
    ['कि', 2],
    ['שָׁ', 1],
    ['مُ', 1],
    ['❤', 1],
    ['☎', 1],
    ['⌚', 2],
    ['👍🏽', 2],
    ['🏴󠁧󠁢󠁥󠁮󠁧󠁿', 2],
    ['🏳️‍🌈', 2],
    ['1️⃣', 2],
    ['a\u200db', 2],
    ['\u2060x', 1],
    ['e\u0301\u0323', 1],
  ])('%j takes %i columns', (text, columns) => {
    expect(displayWidth(text)).toBe(columns)
  })

  it('clips to the columns there are and never through a character', () => {
    expect(clip('日本語', 6)).toBe('日本語')
    expect(clip('日本語', 5)).toBe('日本…')
    expect(clip('日本語', 4)).toBe('日…')
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.integer({ min: 1, max: 20 }),
        (text, width) => displayWidth(clip(text, width)) <= width,
      ),
    )
  })

  it('pads to at least the width asked for', () => {
    expect(padEnd('日', 4)).toBe('日  ')
    expect(padEnd('long', 2)).toBe('long')
  })
})

describe('tables', () => {
  it('align wide characters by what they take on the screen', () => {
    expect(
      table(
        [{ title: 'name' }, { title: 'size', align: 'right' }],
        [
          ['日本', '1 B'],
          ['e\u0301x', '20 kB'],
        ],
      ),
    ).toBe('name   size\n日本    1 B\ne\u0301x    20 kB\n')
  })

  it('make names printable, so that a line end in one cannot start a row', () => {
    expect(table([{ title: 'name' }], [['a\nb\u001b[0m']])).toBe('name\na\\u000ab\\u001b[0m\n')
  })

  it('are nothing without rows', () => {
    expect(table([{ title: 'name' }], [])).toBe('')
  })
})

describe('printable text', () => {
  it('has no control character and no half of a surrogate pair, and leaves the rest as it is', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(/[\p{Control}\p{Surrogate}\u2028\u2029]/u)
      }),
    )
    expect(printable('naïve 日本 👩‍👧 C:\\x')).toBe('naïve 日本 👩‍👧 C:\\x')
    expect(printable('\ud800a\u202eb')).toBe('\\ud800a\\u202eb')
  })
})

describe('units', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [1234, '1.2 kB'],
    [9960, '10 kB'],
    [340_000_000, '340 MB'],
    [999_499, '999 kB'],
    [999_500, '1.0 MB'],
    [2e12, '2.0 TB'],
  ])('%d bytes are %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text)
  })

  it.each([
    [0, 0, '0 %'],
    [0, 5, '0 %'],
    [1, 1_000_000, '0.1 %'],
    [1, 250, '0.4 %'],
    [37, 100, '37 %'],
    [999_999, 1_000_000, '99 %'],
    [5, 5, '100 %'],
  ])('%d of %d is %s', (part, whole, text) => {
    expect(shareText(part, whole)).toBe(text)
  })

  it.each([
    [0, '0.0 s'],
    [9_940, '9.9 s'],
    [9_960, '10 s'],
    [59_600, '1 min'],
    [185_000, '3 min 5 s'],
    [7_440_000, '2 h 4 min'],
    [442_800_000, '5 d 3 h'],
  ])('%d milliseconds are %s', (milliseconds, text) => {
    expect(durationText(milliseconds)).toBe(text)
  })

  it('count with the right noun', () => {
    expect([countText(1, 'session'), countText(0, 'session'), countText(1_234_567, 'entry', 'entries')]).toEqual([
      '1 session',
      '0 sessions',
      '1,234,567 entries',
    ])
  })
})
