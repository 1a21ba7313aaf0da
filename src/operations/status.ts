import type { Store } from '../formats/format.js'
import { ExitCode } from '../model/exit-code.js'
import type { Finding } from '../model/finding.js'
import { noItems, type Json, type Report } from '../model/report.js'
import { daysShown, effectiveRetention, type Retention, type RetentionLayer } from '../model/retention.js'
import { readRows, rowJson, type ListContext } from './list.js'
import type { SessionRow } from './session-facts.js'

export interface StatusOptions {
  /** How many of the largest projects, sessions and paths to name; 0 for none. */
  readonly top: number
  /** Retention layers of our own config for a project. */
  configLayers(project: string | undefined): readonly RetentionLayer[]
  /** What the next night would do with a store. */
  nextNight(store: Store): Json
  /** What the last scheduled run of a store left in its sidecar. */
  lastRun(store: Store): Json
}

/** One name and what it takes up. */
interface Share {
  readonly name: string
  readonly bytes: number
  readonly sessions: number
  readonly historyBytes?: number
}

/**
 * What there is: sessions, checkpoints, backups, bytes by inode, the retention period that counts and where it comes
 * from, and what the next night would do (R12, R86, R91, R93). Never writes.
 */
export function status(stores: readonly Store[], options: StatusOptions, context: ListContext): Report {
  const findings: Finding[] = []
  const described = stores.map((store) => {
    const inventory = store.inventory()
    const rows = readRows(store, context, inventory)
    findings.push(...inventory.findings.filter(({ severity }) => severity !== 'info'))
    return { rows, json: describeStore(store, rows, options) }
  })
  const rows = described.flatMap((part) => part.rows)
  return {
    command: 'status',
    roots: stores.map((store) => store.root),
    applied: false,
    summary: {
      stores: stores.length,
      sessions: rows.length,
      live: rows.filter((row) => row.live).length,
      checkpoints: sum(rows, (row) => row.checkpoints),
      backups: sum(rows, (row) => row.backups),
      bytes: sum(rows, (row) => row.bytes),
      transcriptBytes: sum(rows, (row) => row.transcriptBytes),
    },
    ...noItems,
    findings,
    exitCode: ExitCode.done,
    extra: { stores: described.map(({ json }) => json), sessions: rows.map(rowJson) },
  }
}

function describeStore(store: Store, rows: readonly SessionRow[], options: StatusOptions): Json {
  const versions = new Map<number, number>()
  for (const row of rows) for (const [version, count] of row.versions) versions.set(version, (versions.get(version) ?? 0) + count)
  const retention = effectiveRetention([...store.retention(), ...options.configLayers(undefined)], store.defaultRetentionDays)
  return {
    root: store.root,
    format: store.format,
    sessions: rows.length,
    checkpoints: sum(rows, (row) => row.checkpoints),
    backups: sum(rows, (row) => row.backups),
    bytes: sum(rows, (row) => row.bytes),
    transcriptBytes: sum(rows, (row) => row.transcriptBytes),
    ...historyOf(rows),
    versions: Object.fromEntries([...versions].sort(([a], [b]) => a - b).map(([version, count]) => [`v${String(version)}`, count])),
    retention: retentionJson(retention),
    nextNight: options.nextNight(store),
    lastRun: options.lastRun(store),
    ...(options.top > 0 ? { top: topJson(rows, options.top) } : {}),
  }
}

/** The retention period in the JSON of `status` and `report`. */
export function retentionJson(retention: Retention): Json {
  if (retention.kind === 'unknowable') {
    const unusable = retention.unusable.map((layer) => ({
      layer: layer.layer,
      file: layer.file,
      reason: layer.state.kind === 'unusable' ? layer.state.reason : '',
    }))
    return { days: null, source: 'unknowable', unusable }
  }
  const { source } = retention
  return {
    days: daysShown(retention.days),
    source: source === 'default' ? 'default' : `${source.layer}: ${source.file}`,
    differing: retention.differing.map((layer) => `${layer.layer}: ${layer.file}`),
  }
}

function topJson(rows: readonly SessionRow[], count: number): Json {
  const size = (row: SessionRow): number => row.bytes + row.transcriptBytes
  const shares = (entries: Iterable<Share>): Json =>
    [...entries]
      .sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1))
      .slice(0, count)
      .map((share) => ({ ...share }))
  const projects = new Map<string, Share>()
  const paths = new Map<string, Share>()
  for (const row of rows) {
    addShare(projects, row.project ?? '(unknown)', size(row))
    for (const [path, bytes] of row.paths) addShare(paths, path, bytes)
  }
  return {
    projects: shares(projects.values()),
    sessions: shares(rows.map((row) => ({ name: row.id, bytes: size(row), sessions: 1 }))),
    transcripts: shares(rows.map((row) => ({ name: row.id, bytes: row.transcriptBytes, sessions: 1, ...historyOf([row]) }))),
    paths: shares(paths.values()),
  }
}

function addShare(shares: Map<string, Share>, name: string, bytes: number): void {
  const known = shares.get(name)
  shares.set(name, { name, bytes: (known?.bytes ?? 0) + bytes, sessions: (known?.sessions ?? 0) + 1 })
}

/** Bytes of history lines, where transcripts hold them (R83). */
function historyOf(rows: readonly SessionRow[]): { readonly historyBytes?: number } {
  return rows.some((row) => row.historyBytes !== undefined) ? { historyBytes: sum(rows, (row) => row.historyBytes ?? 0) } : {}
}

function sum(rows: readonly SessionRow[], of: (row: SessionRow) => number): number {
  return rows.reduce((total, row) => total + of(row), 0)
}
