import { github } from './github.js'
import { json } from './json.js'
import { junit } from './junit.js'
import { ndjson } from './ndjson.js'
import type { Reporter, ReporterName } from './reporter.js'
import { sarif } from './sarif.js'
import { text } from './text.js'

/** Every way to report, by the name that `--format` takes. */
export const reporters: Readonly<Record<ReporterName, Reporter>> = { text, json, ndjson, sarif, junit, github }
