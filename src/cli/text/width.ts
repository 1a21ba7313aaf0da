const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

const plain = /^[\u0020-\u007e]*$/
const emoji = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u
// As `wcwidth` of xterm and glibc have it: a mark that has a place of its own (Mc) takes one, the soft hyphen too.
const zeroWidth = /^(?!\u00ad)[\p{Nonspacing_Mark}\p{Enclosing_Mark}\p{Default_Ignorable_Code_Point}\p{Control}\u1160-\u11ff]$/u

// East Asian Width W and F (Unicode Standard Annex 11), in blocks.
const wideRanges: readonly (readonly [first: number, last: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x3247],
  [0x3250, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
]

/** Columns that `text` takes on a terminal: wide East Asian characters and emoji two, combining marks none. */
export function displayWidth(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += graphemeWidth(segment)
  return width
}

/** `text` followed by blanks up to `width` columns; longer text is left as it is. */
export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)))
}

/** `text` with blanks before it up to `width` columns. */
export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - displayWidth(text))) + text
}

/** The longest start of `text` that fits into `width` columns; `…` marks a cut. */
export function clip(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let kept = ''
  let used = 1
  for (const { segment } of segmenter.segment(text)) {
    used += graphemeWidth(segment)
    if (used > width) break
    kept += segment
  }
  return `${kept}…`
}

/** A sequence that makes one emoji takes two columns; of anything else every character counts for itself. */
function graphemeWidth(grapheme: string): number {
  if (emoji.test(grapheme)) return 2
  let width = 0
  for (const character of grapheme) width += characterWidth(character)
  return width
}

function characterWidth(character: string): number {
  const point = character.codePointAt(0) ?? 0
  if (wideRanges.some(([first, last]) => point >= first && point <= last)) return isCombining(character) ? 0 : 2
  return zeroWidth.test(character) ? 0 : 1
}

// The tone marks of ideographs and the sound marks of kana lie in the wide blocks; the Hangul fillers are wide though nothing is seen.
function isCombining(character: string): boolean {
  return /\p{Nonspacing_Mark}/u.test(character)
}
