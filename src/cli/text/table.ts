import { printable } from './printable.js'
import { displayWidth, padEnd, padStart } from './width.js'

/** One column of a table. */
export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
}

/**
 * A table in plain text, one line per row with a line of titles before them; each line ends with a line end. Cells are made
 * printable, so names out of a store can be given as they are. Without rows there is no table: ''.
 */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[], indent = ''): string {
  if (rows.length === 0) return ''
  const titled = columns.some((column) => column.title !== '')
  const lines = [...(titled ? [columns.map((column) => column.title)] : []), ...rows.map((row) => row.map(printable))]
  const widths = columns.map((_, index) => lines.reduce((widest, line) => Math.max(widest, displayWidth(line[index] ?? '')), 0))
  return lines
    .map(
      (line) =>
        `${indent}${columns
          .map((column, index) => cell(line[index] ?? '', widths[index] ?? 0, column))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('')
}

function cell(text: string, width: number, column: Column): string {
  return column.align === 'right' ? padStart(text, width) : padEnd(text, width)
}
