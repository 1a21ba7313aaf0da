import { printable } from '../text/printable.js'

/** Markup that was made by `html`, so that everything in it that came from outside is escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | undefined | readonly Part[]

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/**
 * A template whose values are text and stay text, in elements and in quoted attributes: names out of a store are made printable and
 * escaped. Only what `html` itself made goes in as it is; lists are joined, `undefined` is nothing.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Part[]): Markup {
  return new Markup(strings.reduce((text, string, index) => `${text}${string}${index < values.length ? partText(values[index]) : ''}`, ''))
}

function partText(part: Part): string {
  if (part === undefined) return ''
  if (part instanceof Markup) return part.text
  if (typeof part === 'object') return part.map(partText).join('')
  return printable(String(part)).replace(/[&<>"']/g, (character) => entities[character] ?? character)
}
