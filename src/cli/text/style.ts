import type { Severity } from '../../model/finding.js'

/** How text may look where it goes. */
export interface Style {
  readonly colour: boolean
  /** Columns of the terminal, or 80. */
  readonly width: number
}

const colours: Record<Severity, number> = { error: 31, warn: 33, info: 36, ignore: 2 }

/** A severity's own word, coloured when the style has colours; nothing else is ever coloured. */
export function severityWord(severity: Severity, style: Style): string {
  return style.colour ? `\u001b[${String(colours[severity])}m${severity}\u001b[0m` : severity
}
