/** The candidate that `word` was probably meant to be: at most a third of its letters away; `undefined` when none is. */
export function nearestName(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined
  let least = Math.max(2, Math.ceil(word.length / 3)) + 1
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (distance >= least) continue
    best = candidate
    least = distance
  }
  return best
}

/** Letters to insert, remove or replace to make one word of the other. */
export function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
