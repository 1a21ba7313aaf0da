// C0 and C1 controls, line separators, and the marks that reorder text on a terminal.
const unsafe = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu

/**
 * Makes a name or a message safe to print: control characters, line ends, marks that turn the direction of text, and
 * halves of surrogate pairs become `\uXXXX` (design section 3, promise 10).
 */
export function printable(text: string): string {
  return text.replace(unsafe, escapeUnit)
}

/** `\uXXXX` for one UTF-16 unit. */
export function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}
