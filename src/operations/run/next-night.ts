import type { Machine, Store } from '../../formats/format.js'
import { RewindAdminError } from '../../model/errors.js'
import type { Json } from '../../model/report.js'
import type { Config } from '../../settings/config.js'
import { planCap } from '../cap.js'
import { planExpire } from '../expire.js'
import { removalRows, type Removal } from '../removal/removal.js'

/** What the next night would remove from a store: numbers, or why it would remove nothing. Reads only. */
export function nextNight(store: Store, config: Config, context: { readonly now: number; readonly machine: Machine }): Json {
  const { cap: max, quietPeriodMs, floorMs } = config
  return {
    expire: counted(() => planExpire(store, { config, floorMs, quietPeriodMs }, context)),
    cap: counted(() => planCap(store, { ...(max === undefined ? {} : { max }), quietPeriodMs }, context)),
  }
}

function counted(plan: () => Removal): Json {
  try {
    const removal = plan()
    const { plan: items, summary, errors } = removalRows(removal)
    const refusal = removal.refusal === undefined ? {} : { refused: removal.refusal.message }
    return { actions: items.length, bytes: summary.bytes ?? 0, errors: errors.length, ...refusal }
  } catch (error) {
    if (error instanceof RewindAdminError) return { actions: 0, bytes: 0, refused: error.message }
    throw error
  }
}
