import { createHash } from 'node:crypto'
import { isAbsolute } from 'node:path'
import { pathToFileURL } from 'node:url'
import { findingKinds, remedyOf, type Finding, type FindingId, type Severity } from '../../model/finding.js'
import type { ErrorItem, Report } from '../../model/report.js'
import { safeJson } from './json.js'
import { shownFindings, type Reporter } from './reporter.js'

const schema = 'https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json'
/** The name that paths in results are relative to; its value is the root of the store. */
const baseId = 'STORE_ROOT'
const levels: Record<Severity, string> = { error: 'error', warn: 'warning', info: 'note', ignore: 'none' }
const ruleIds = Object.keys(findingKinds) as FindingId[]

/**
 * SARIF 2.1.0: a rule per kind of finding, a result per finding. With several roots the base of relative paths is left open, since a
 * finding does not say whose it is.
 */
export const sarif: Reporter = {
  write(report, meta) {
    const run = {
      tool: { driver: { name: 'rewind-admin', version: meta.version, rules: ruleIds.map(rule) } },
      invocations: [
        {
          executionSuccessful: report.errors.length === 0 && report.exitCode <= 1,
          exitCode: report.exitCode,
          startTimeUtc: new Date(meta.startedAt).toISOString(),
          endTimeUtc: new Date(meta.startedAt + meta.durationMs).toISOString(),
          toolExecutionNotifications: report.errors.map(notification),
        },
      ],
      ...baseOf(report),
      columnKind: 'utf16CodeUnits',
      results: shownFindings(report).map(result),
    }
    return `${safeJson({ $schema: schema, version: '2.1.0', runs: [run] }, 2)}\n`
  },
}

function rule(id: FindingId): object {
  const remedy = remedyOf(id)
  return {
    id,
    shortDescription: { text: messageText(findingKinds[id].title) },
    ...(remedy === undefined ? {} : { help: { text: messageText(remedy) } }),
    defaultConfiguration: { level: levels[findingKinds[id].severity] },
  }
}

function baseOf(report: Report): object {
  const [root] = report.roots
  if (root === undefined || report.roots.length > 1) return {}
  return { originalUriBaseIds: { [baseId]: { uri: pathToFileURL(root.endsWith('/') ? root : `${root}/`).href } } }
}

function result(item: Finding): object {
  const { place, session, remedy } = item
  const location = {
    ...(place === undefined
      ? {}
      : {
          physicalLocation: {
            artifactLocation: artifact(place.path),
            ...(place.offset === undefined ? {} : { region: { byteOffset: place.offset } }),
          },
        }),
    ...(session === undefined ? {} : { logicalLocations: [{ name: session, kind: 'session' }] }),
  }
  return {
    ruleId: item.id,
    ruleIndex: ruleIds.indexOf(item.id),
    level: levels[item.severity],
    message: { text: messageText(item.message) },
    ...(Object.keys(location).length === 0 ? {} : { locations: [location] }),
    partialFingerprints: { 'rewindAdminFinding/v1': fingerprint(item) },
    ...(remedy === undefined ? {} : { properties: { remedy } }),
  }
}

function notification(item: ErrorItem): object {
  return {
    descriptor: { id: item.code },
    level: 'error',
    message: { text: messageText(item.message) },
    ...(item.path === undefined ? {} : { locations: [{ physicalLocation: { artifactLocation: artifact(item.path) } }] }),
  }
}

function artifact(path: string): object {
  if (isAbsolute(path)) return { uri: pathToFileURL(path).href }
  return { uri: path.split('/').map(encodeSegment).join('/'), uriBaseId: baseId }
}

function encodeSegment(segment: string): string {
  // A lone half of a surrogate pair has no UTF-8 and encodeURIComponent would throw.
  return encodeURIComponent(segment.replace(/\p{Surrogate}/gu, '\ufffd'))
}

/** The same finding of the same place has the same fingerprint in each run; transcripts only grow, so offsets stay. */
function fingerprint(item: Finding): string {
  const identity = [item.id, item.session, item.place?.path, item.place?.offset]
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex').slice(0, 32)
}

/** Braces are placeholders and `[text](target)` is a link in SARIF messages (sections 3.11.5 and 3.11.6): names must be neither. */
function messageText(text: string): string {
  const doubled = text.replace(/[{}]/g, '$&$&')
  return doubled.includes('](') ? doubled.replace(/[[\]]/g, '\\$&') : doubled
}
