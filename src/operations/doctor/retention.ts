import type { Store } from '../../formats/format.js'
import { finding, type Finding } from '../../model/finding.js'
import type { Json } from '../../model/report.js'
import { daysShown, effectiveRetention, type Retention, type RetentionLayer } from '../../model/retention.js'
import { configLayers, type Config } from '../../settings/config.js'

/** The retention of a store as rows of the report, and what is wrong with it. */
export interface RetentionState {
  readonly row: Json
  readonly findings: readonly Finding[]
}

/**
 * The effective period of a store and of each project that says something of its own, every layer shown. An unusable
 * file is one finding, however many projects it speaks for (R05).
 */
export function checkRetention(store: Store, projects: readonly string[], config: Config): RetentionState {
  const wide = store.retention()
  const known = new Set(wide.map((layer) => layer.file))
  const unusable = new Map<string, RetentionLayer>()
  collectUnusable(wide, unusable)
  const rows: Json[] = []
  for (const project of projects) {
    const layers = [...configLayers(config, project), ...store.retention(project)]
    collectUnusable(layers, unusable)
    const own = layers.filter((layer) => !known.has(layer.file) && (layer.state.kind === 'days' || layer.state.kind === 'unusable'))
    if (own.length > 0) rows.push({ project, ...retentionRow(store, layers) })
  }
  const findings = [...unusable.values()].map(({ layer, file, state }) => {
    const reason = state.kind === 'unusable' ? state.reason : ''
    return finding('settings-unknowable', `${file} (${layer} settings): ${reason}`, { path: file })
  })
  return { row: { ...retentionRow(store, wide), projects: rows }, findings }
}

function collectUnusable(layers: readonly RetentionLayer[], unusable: Map<string, RetentionLayer>): void {
  for (const layer of layers) if (layer.state.kind === 'unusable') unusable.set(layer.file, layer)
}

function retentionRow(store: Store, layers: readonly RetentionLayer[]): Readonly<Record<string, Json>> {
  const retention = effectiveRetention(layers, store.defaultRetentionDays)
  return {
    days: retention.kind === 'known' ? daysShown(retention.days) : null,
    source: sourceText(retention),
    layers: layers.map((layer) => ({
      layer: layer.layer,
      file: layer.file,
      state: layer.state.kind,
      days: layer.state.kind === 'days' ? daysShown(layer.state.days) : undefined,
      reason: layer.state.kind === 'unusable' ? layer.state.reason : undefined,
      wins: retention.kind === 'known' && retention.source === layer,
    })),
  }
}

function sourceText(retention: Retention): string {
  if (retention.kind === 'unknowable') return 'unknowable'
  return retention.source === 'default' ? 'default' : `${retention.source.layer}: ${retention.source.file}`
}
