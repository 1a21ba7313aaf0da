import type { Store } from '../../formats/format.js'
import { RetentionUnknowableError } from '../../model/errors.js'
import { durationText, sourceText, type EffectivePeriod } from '../../model/expiry.js'
import { dayMs } from '../../model/period.js'
import type { Json } from '../../model/report.js'
import { daysShown, defaultRetentionDays, effectiveRetention, type RetentionLayer } from '../../model/retention.js'
import { configLayers, type Config } from '../../settings/config.js'
import type { ExpireOptions } from './options.js'

/** A period of the command line that stands for those of the agent's settings. */
interface PeriodFlag {
  /** Milliseconds. */
  readonly ms: number
  readonly source: 'flag' | 'budget'
}

/**
 * The retention periods of a store: for all of it, and for each project whose settings or whose entry in our configuration
 * say something else. Layers that differ: the longest wins (R01, R02, R09).
 */
export class Periods {
  readonly #store: Store
  readonly #config: Config
  readonly #flag: PeriodFlag | undefined
  readonly #wide: EffectivePeriod
  readonly #byFolder = new Map<string, EffectivePeriod>()

  /** @throws RetentionUnknowableError when a layer exists that cannot be used (R05, R06) */
  constructor(store: Store, options: Pick<ExpireOptions, 'config' | 'olderThanMs' | 'maxBytes' | 'floorMs'>) {
    this.#store = store
    this.#config = options.config
    this.#flag = flagOf(options)
    this.#wide = this.#effective(store.retention(), [])
  }

  /** The period of a session whose project says nothing of its own. */
  get wide(): EffectivePeriod {
    return this.#wide
  }

  /** The shortest period in milliseconds that a session can have: what is younger needs no more looking. */
  get leastMs(): number {
    // Where no layer speaks for the whole store, one of a project may say less than the default.
    return this.#wide.source === 'default' ? dayMs : this.#wide.ms
  }

  /** The period of a session that cannot say which project it belongs to: the longest of all. */
  get longest(): EffectivePeriod {
    const layers = this.#config.periods.map(({ project, days }) => layerOf(this.#config, project, days))
    return longer(this.#wide, this.#effective(this.#store.retention(), layers))
  }

  /** The period of a session that was started in these folders. @throws RetentionUnknowableError */
  of(folders: readonly string[]): EffectivePeriod {
    return folders.map((folder) => this.#ofFolder(folder)).reduce<EffectivePeriod | undefined>((a, b) => (a === undefined ? b : longer(a, b)), undefined) ?? this.#wide
  }

  /** For reports: the period of the whole store, its source, and every project that has another one. */
  summary(): Json {
    const projects = [...this.#byFolder].filter(([, period]) => period.ms !== this.#wide.ms)
    return { ...rowOf(this.#wide), projects: projects.map(([project, period]) => ({ project, ...rowOf(period) })) }
  }

  #ofFolder(folder: string): EffectivePeriod {
    const known = this.#byFolder.get(folder)
    if (known !== undefined) return known
    const period = this.#effective(this.#store.retention(folder), configLayers(this.#config, folder))
    this.#byFolder.set(folder, period)
    return period
  }

  #effective(layers: readonly RetentionLayer[], own: readonly RetentionLayer[]): EffectivePeriod {
    const retention = effectiveRetention([...own, ...layers], this.#store.defaultRetentionDays)
    if (retention.kind === 'unknowable') throw unknowable(retention.unusable)
    const { differing } = retention
    if (this.#flag === undefined) return { ms: retention.days * dayMs, source: retention.source, differing }
    const { ms: flagMs, source } = this.#flag
    const [longestOwn] = [...own].sort((a, b) => daysOf(b) - daysOf(a))
    const said = layers.filter((layer) => layer.state.kind === 'days' && layer.state.days * dayMs !== flagMs)
    if (longestOwn === undefined || daysOf(longestOwn) * dayMs <= flagMs) return { ms: flagMs, source, differing: said }
    return { ms: daysOf(longestOwn) * dayMs, source: longestOwn, differing: said }
  }
}

function flagOf({ olderThanMs, maxBytes, floorMs }: Pick<ExpireOptions, 'olderThanMs' | 'maxBytes' | 'floorMs'>): PeriodFlag | undefined {
  if (olderThanMs !== undefined) return { ms: olderThanMs, source: 'flag' }
  return maxBytes === undefined ? undefined : { ms: floorMs, source: 'budget' }
}

function unknowable(unusable: readonly RetentionLayer[]): RetentionUnknowableError {
  const reasons = unusable.map(({ file, layer, state }) => `${file} (${layer} settings): ${state.kind === 'unusable' ? state.reason : ''}`)
  return new RetentionUnknowableError(`the retention period cannot be known, so nothing expires: ${reasons.join('; ')}`, {
    hint: 'mend or remove the file; cleanupPeriodDays must be a whole number of days, 1 or more',
  })
}

function longer(a: EffectivePeriod, b: EffectivePeriod): EffectivePeriod {
  return b.ms > a.ms ? b : a
}

function layerOf(config: Config, project: string, days: number): RetentionLayer {
  return { layer: 'config', file: config.file ?? `the configuration, project ${project}`, state: { kind: 'days', days } }
}

function daysOf(layer: RetentionLayer): number {
  return layer.state.kind === 'days' ? layer.state.days : defaultRetentionDays
}

function rowOf(period: EffectivePeriod): Readonly<Record<string, Json>> {
  return {
    period: durationText(period.ms),
    days: daysShown(period.ms / dayMs),
    source: sourceText(period.source),
    differing: period.differing.map((layer) => ({ layer: layer.layer, file: layer.file, days: daysShown(daysOf(layer)) })),
  }
}
