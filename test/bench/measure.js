import { spawnSync } from 'node:child_process'

/** Median of numbers. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Runs a whole process and returns its wall time in seconds and what it printed. Throws when it fails. */
export function timed(command, args, options = {}) {
  const start = process.hrtime.bigint()
  const result = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options })
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  const accepted = options.accept ?? [0]
  if (!accepted.includes(result.status)) throw new Error(`${command} ${args.join(' ')} ended with ${result.status}: ${result.stderr}`)
  return { seconds, stdout: result.stdout }
}

/** Runs a script with a shell. */
export function shell(script, options) {
  return timed('sh', ['-c', script], options)
}

/**
 * Times ours against the base in turn, so that both see the same machine, and returns the median of the ratios of each
 * pair. `ours` and `base` return seconds. One pair is run first and not counted.
 */
export function ratio(ours, base, runs = 5) {
  const pairs = []
  for (let run = 0; run <= runs; run += 1) pairs.push({ ours: ours(), base: base() })
  return ratioOf(pairs)
}

/** The same for pairs that were timed elsewhere: seconds of ours and of the base. The first one is not counted. */
export function ratioOf([, ...pairs]) {
  const ratios = pairs.map(({ ours, base }) => ours / base)
  const of = (which) => median(pairs.map((pair) => pair[which]))
  return { ratio: median(ratios), ours: of('ours'), base: of('base'), least: Math.min(...ratios), most: Math.max(...ratios) }
}

/** Prints one row; `limit` is what the ratio should not exceed, if there is such a number. */
export function printRatio(name, { ratio: value, ours, base, least, most }, limit) {
  const verdict = limit === undefined ? '' : `${value <= limit ? 'within' : 'ABOVE'} ${String(limit)}`
  const numbers = `${value.toFixed(2)} (${least.toFixed(2)}-${most.toFixed(2)})`
  console.log(`${name.padEnd(46)} ${numbers.padStart(20)}  ${verdict.padEnd(11)}  ours ${ours.toFixed(2)} s, base ${base.toFixed(2)} s`)
}

/** Prints one row about memory, in MB. */
export function printMemory(name, megabytes, limit) {
  console.log(`${name.padEnd(46)} ${`${megabytes.toFixed(0)} MB`.padStart(20)}  ${megabytes <= limit ? 'within' : 'ABOVE'} ${String(limit)} MB`)
}
