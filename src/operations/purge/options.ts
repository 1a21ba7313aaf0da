import type { PathProbe } from '../../fs/path-probe.js'
import type { BrakeLimit } from '../../plan/brake.js'
import type { Config } from '../../settings/config.js'
import type { PlanContext } from '../expire/options.js'

export interface PurgeOptions {
  /** Folders of projects as given; more than one for a list. */
  readonly projects: readonly string[]
  /** Also what was started below them. */
  readonly recursive?: boolean
  /** Also what was started in another spelling that leads to the same folder through a link. */
  readonly follow?: boolean
  /** Also the memory of project folders in which nothing else is left. */
  readonly memory?: boolean
  /** Also lines of the prompt history and keys of the global file. */
  readonly shared?: boolean
  /** A session that changed within so many milliseconds is left alone; 0 leaves that to the registry of running sessions. */
  readonly quietPeriodMs: number
  readonly maxDelete?: BrakeLimit
  readonly config?: Pick<Config, 'brake'>
  readonly protectedSessions?: ReadonlyMap<string, string>
}

export interface PurgeContext extends PlanContext {
  /** What relative paths are relative to. */
  readonly cwd: string
  readonly home: string
  readonly probe: PathProbe
}
