/** One word for a POSIX shell between single quotes, whatever is in it. */
export function shellQuoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`
}
