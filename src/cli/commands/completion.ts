import { isConversation } from '../../model/session.js'
import { ExitCode } from '../../model/exit-code.js'
import { noItems, type Report } from '../../model/report.js'
import { completionScript, describeCommands, shells } from '../completion-script.js'
import { whereSessionIsNext } from '../completion-words.js'
import type { CommandContext } from '../context.js'
import { readGlobals } from '../globals.js'
import { printable } from '../text/printable.js'
import { openWorkplace } from '../workplace.js'
import { defineCommand } from './command.js'
import { commandTable } from './table.js'

/** Prints the completion script of a shell, and what that script asks for. */
export const command = defineCommand({
  positionals: {
    shell: { choices: [...shells, 'sessions'], demandOption: true, describe: 'The shell that will read the script; sessions: ids, for the script' },
  },
  options: {
    // A word may look like an option of ours, so each has one of its own.
    word: { type: 'string', array: true, hidden: true, describe: 'For sessions: a word that is typed already' },
  },
  async run(context, { shell, word }) {
    const known = shells.find((name) => name === shell)
    if (known === undefined) {
      const sessions = await sessionIds(context, word ?? [])
      return { report: reportOf({ sessions }), text: () => ({ body: sessions.map((id) => `${printable(id)}\n`).join('') }) }
    }
    const script = completionScript(known, await describeCommands(commandTable))
    return { report: reportOf({ shell: known, script }), text: () => ({ body: script }) }
  },
})

/** Ids that may be next on a command line, by names alone: no transcript is opened. */
async function sessionIds(context: CommandContext, words: readonly string[]): Promise<string[]> {
  const options = await whereSessionIsNext(words, commandTable)
  if (options === undefined) return []
  const { stores } = openWorkplace({ ...context, globals: readGlobals(options, context) })
  return stores.flatMap((store) => store.inventory().sessions.filter(isConversation).map(({ id }) => id))
}

function reportOf(extra: NonNullable<Report['extra']>): Report {
  return { command: 'completion', roots: [], applied: false, summary: {}, ...noItems, exitCode: ExitCode.done, extra }
}
