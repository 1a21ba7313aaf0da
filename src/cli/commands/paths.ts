import { isWindowsShaped } from '../../model/project-path.js'
import type { CommandContext } from '../context.js'
import { absolutePath } from '../globals.js'

/** A file that the command line names: relative to the working folder, a leading `~/` is the home. */
export function filePath(context: Pick<CommandContext, 'cwd' | 'home'>, given: string): string {
  return absolutePath(given, context)
}

/** A project as recorded folders are compared with it. A path in the shape of Windows means the same on every host (R94). */
export function projectPath(context: Pick<CommandContext, 'cwd' | 'home'>, given: string): string {
  return isWindowsShaped(given) ? given : absolutePath(given, context)
}
