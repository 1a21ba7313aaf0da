import { finding, type Finding } from '../../../model/finding.js'

/** Sessions of clients newer than the one this version was tested with, one finding for the whole store. */
export function newerClients(clients: ReadonlyMap<string, number>, tested: string): Finding[] {
  const newer = [...clients].filter(([version]) => compareVersions(version, tested) > 0)
  const [first] = newer
  if (first === undefined) return []
  const newest = newer.reduce((best, [version]) => (compareVersions(version, best) > 0 ? version : best), first[0])
  const sessions = newer.reduce((sum, [, count]) => sum + count, 0)
  return [finding('newer-client', `${String(sessions)} sessions were written by clients up to ${newest}; tested up to ${tested}`)]
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [numbers(a), numbers(b)]
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

function numbers(version: string): number[] {
  return version.split('.').map((part) => Number.parseInt(part, 10) || 0)
}
