const units: Readonly<Record<string, number>> = { '': 1, 'K': 1024, 'M': 1024 ** 2, 'G': 1024 ** 3, 'T': 1024 ** 4 }

/** How a size is written, for messages. */
export const sizeShape = 'a size in bytes like 500M or 2G'

/** Bytes of a whole number, or of one with K, M, G or T, of which each is 1024 times the one before; `undefined` for anything else. */
export function parseSize(text: string): number | undefined {
  const match = /^([0-9]+)([KMGT]?)$/.exec(text)
  if (match === null) return undefined
  const bytes = Number(match[1]) * (units[match[2] ?? ''] ?? 1)
  return Number.isSafeInteger(bytes) ? bytes : undefined
}
