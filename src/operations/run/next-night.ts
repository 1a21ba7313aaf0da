import type { Machine, Store } from '../../formats/format.js'
import { RewindAdminError } from '../../model/errors.js'
import type { Config } from '../../settings/config.js'
import { planCap } from '../cap.js'
import { planExpire } from '../expire.js'
import { removalRows, type Removal } from '../removal/removal.js'
import { heldBack } from './hold.js'

/** What one step would remove: numbers, or why it would remove nothing. */
interface Outlook {
  readonly actions: number
  readonly bytes: number
  readonly errors?: number
  readonly refused?: string
  readonly [field: string]: number | string | undefined
}

/** What the next night would remove from a store; `held` says why it would remove nothing now. */
export interface NextNight {
  readonly held?: string
  readonly expire: Outlook
  readonly cap: Outlook
  readonly [field: string]: string | Outlook | undefined
}

/** What the next night would remove from a store. Reads only. */
export function nextNight(store: Store, config: Config, context: { readonly now: number; readonly machine: Machine }): NextNight {
  const { cap: max, quietPeriodMs, floorMs } = config
  const held = heldBack(store, context.now)
  return {
    ...(held === undefined ? {} : { held: held.why }),
    expire: counted(() => planExpire(store, { config, floorMs, quietPeriodMs }, context)),
    cap: counted(() => planCap(store, { ...(max === undefined ? {} : { max }), quietPeriodMs }, context)),
  }
}

function counted(plan: () => Removal): Outlook {
  try {
    const removal = plan()
    const { plan: items, summary, errors } = removalRows(removal)
    const refusal = removal.refusal === undefined ? {} : { refused: removal.refusal.message }
    return { actions: items.length, bytes: Number(summary.bytes ?? 0), errors: errors.length, ...refusal }
  } catch (error) {
    if (error instanceof RewindAdminError) return { actions: 0, bytes: 0, refused: error.message }
    throw error
  }
}
