import type { Machine } from '../../formats/format.js'
import type { BrakeLimit } from '../../plan/brake.js'
import type { Config } from '../../settings/config.js'

export interface ExpireOptions {
  readonly config: Config
  /** Stands for every period of the agent's settings; milliseconds. Periods of our own configuration still lengthen it. */
  readonly olderThanMs?: number
  /**
   * Bytes that the sessions of the store may take up (R86): only as many go as it takes, the oldest first. Without `olderThanMs` every
   * session above the floor may go, whatever the settings of the agent say; they must be usable all the same.
   */
  readonly maxBytes?: number
  /** Age in milliseconds below which nothing expires. */
  readonly floorMs: number
  /** A session that changed within so many milliseconds is left alone. */
  readonly quietPeriodMs: number
  readonly maxDelete?: BrakeLimit
  /** False: a session that appeared with old dates gets no period of its own. */
  readonly grace?: boolean
  /** False: go on when the clock looks wrong. */
  readonly clockCheck?: boolean
  /** Sessions that must stay, with the reason, for instance because verify found errors in them. */
  readonly protectedSessions?: ReadonlyMap<string, string>
}

export interface PlanContext {
  /** Milliseconds since 1970. */
  readonly now: number
  readonly machine: Machine
}
