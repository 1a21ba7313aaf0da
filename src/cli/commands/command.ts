import type { InferredOptionTypes, Options, PositionalOptions } from 'yargs'
import type { Report } from '../../model/report.js'
import type { CommandContext } from '../context.js'
import type { ReporterName } from '../reporters/reporter.js'
import type { Style } from '../text/style.js'

/** The parts of a text report that only this command can write. Names in them must be made `printable`; `table` does it. */
export interface TextParts {
  /** Printed first; ends with a line end. Takes the place of the summary. */
  readonly body?: string
  /** Printed after findings, plan and errors; one or more whole lines. Takes the place of the summary. */
  readonly closing?: string
}

/** What a command hands back: the report, and what its text looks like when there is more to it than the report. */
export interface CommandResult {
  readonly report: Report
  /** Called only when the text reporter is used. */
  readonly text?: (style: Style) => TextParts
}

/** `fail-on` → `failOn`. */
type CamelCaseKey<K> = K extends `${infer Start}-${infer Next}${infer Rest}` ? `${Start}${Uppercase<Next>}${CamelCaseKey<Rest>}` : K

type OptionTable = Readonly<Record<string, Options>>
type PositionalTable = Readonly<Record<string, PositionalOptions>>

/** Parsed options by camel-case name, positionals by their own name. */
type ParsedOptions<P extends PositionalTable, O extends OptionTable> = Readonly<
  InferredOptionTypes<{ -readonly [K in keyof P]: P[K] }> & { [K in keyof O as CamelCaseKey<K>]: InferredOptionTypes<O>[K] }
>

export interface CommandDefinition<P extends PositionalTable, O extends OptionTable> {
  /** One per name in the entry's `usage`. Give `type: 'string'`, so that `1e5` stays text; `array: true` for `[name..]`. */
  readonly positionals: P
  /** Kebab-case names. String and number options need a value; only `array: true` may be given twice. */
  readonly options: O
  /** Reads the options, calls one operation, hands back its report. Errors are thrown. */
  run(context: CommandContext, options: ParsedOptions<P, O>): Promise<CommandResult>
}

/** A command as the frame sees it: its options are checked, but no longer known by type. */
export interface CommandModule {
  readonly positionals: PositionalTable
  readonly options: OptionTable
  run(context: CommandContext, options: Readonly<Record<string, unknown>>): Promise<CommandResult>
}

/**
 * Declares a command; types of `options` in `run` follow from the two tables. An option named `format` is read by the
 * frame as well: spread `formatOption` for it.
 */
export function defineCommand<const P extends PositionalTable, const O extends OptionTable>(
  definition: CommandDefinition<P, O>,
): CommandModule {
  return {
    positionals: definition.positionals,
    options: definition.options,
    // The parser has checked every value against the same two tables that the type comes from.
    run: (context, options) => definition.run(context, options as ParsedOptions<P, O>),
  }
}

/** `--format` of commands that report findings. `--json` is short for `--format json`. */
export const formatOption = {
  format: {
    choices: ['text', 'json', 'ndjson', 'sarif', 'junit', 'github'] as const satisfies readonly ReporterName[],
    describe: 'How to report',
  },
} as const
