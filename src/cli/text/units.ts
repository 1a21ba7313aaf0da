const sizes = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** A number of bytes in decimal units with at most three digits: `0 B`, `1.2 kB`, `340 MB`. */
export function bytesText(bytes: number): string {
  let value = bytes
  let unit = 0
  // 999.5 would be printed as 1000.
  while (Math.abs(value) >= (unit === 0 ? 1000 : 999.5) && unit < sizes.length - 1) {
    value /= 1000
    unit += 1
  }
  const digits = unit === 0 || Math.abs(value) >= 9.95 ? 0 : 1
  return `${value.toFixed(digits)} ${sizes[unit] ?? 'B'}`
}

/** A length of time in milliseconds with its two largest units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 4 min`, `5 d 3 h`. */
export function durationText(milliseconds: number): string {
  const seconds = milliseconds / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${String(whole)} s`
  if (whole < 3600) return pair(whole, 60, 'min', 1, 's')
  if (whole < 86_400) return pair(whole, 3600, 'h', 60, 'min')
  return pair(whole, 86_400, 'd', 3600, 'h')
}

/** `1 session`, `2 sessions`: a count with its noun; digits in groups of three. */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${groupDigits(count)} ${count === 1 ? one : many}`
}

/** A part of a whole in percent: `0 %`, `0.4 %`, `37 %`; never `100 %` or `0 %` of what is not. */
export function shareText(part: number, whole: number): string {
  const percent = whole === 0 ? 0 : (part / whole) * 100
  if (percent === 0 || percent === 100) return `${String(percent)} %`
  return percent < 9.95 ? `${Math.max(percent, 0.1).toFixed(1)} %` : `${String(Math.min(Math.round(percent), 99))} %`
}

/** Digits in groups of three with commas: `1,234,567`. */
export function groupDigits(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

function pair(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const first = Math.floor(seconds / large)
  const rest = Math.floor((seconds % large) / small)
  return rest === 0 ? `${String(first)} ${largeName}` : `${String(first)} ${largeName} ${String(rest)} ${smallName}`
}
