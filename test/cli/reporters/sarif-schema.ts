/**
 * The part of the SARIF 2.1.0 schema that our reports use, by hand: for each object its properties, the required ones marked with `!`.
 * Like the schema, an object may have no property that is not named here.
 */
type Check =
  | 'string'
  | 'integer'
  | 'boolean'
  | 'uri'
  | 'time'
  | readonly string[]
  | { readonly list: string }
  | { readonly map: string }
  | { readonly object: string }

const objects: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  log: { '$schema': 'uri', 'version!': ['2.1.0'], 'runs!': { list: 'run' } },
  run: {
    'tool!': { object: 'tool' },
    'invocations': { list: 'invocation' },
    'originalUriBaseIds': { map: 'artifactLocation' },
    'columnKind': ['utf16CodeUnits', 'unicodeCodePoints'],
    'results': { list: 'result' },
  },
  tool: { 'driver!': { object: 'toolComponent' } },
  toolComponent: { 'name!': 'string', 'version': 'string', 'rules': { list: 'reportingDescriptor' } },
  reportingDescriptor: {
    'id!': 'string',
    'shortDescription': { object: 'message' },
    'help': { object: 'message' },
    'defaultConfiguration': { object: 'reportingConfiguration' },
  },
  reportingConfiguration: { level: ['none', 'note', 'warning', 'error'] },
  invocation: {
    'executionSuccessful!': 'boolean',
    'exitCode': 'integer',
    'startTimeUtc': 'time',
    'endTimeUtc': 'time',
    'toolExecutionNotifications': { list: 'notification' },
  },
  notification: {
    'message!': { object: 'message' },
    'level': ['none', 'note', 'warning', 'error'],
    'descriptor': { object: 'reference' },
    'locations': { list: 'location' },
  },
  reference: { id: 'string' },
  message: { 'text!': 'string' },
  result: {
    'ruleId': 'string',
    'ruleIndex': 'integer',
    'level': ['none', 'note', 'warning', 'error'],
    'message!': { object: 'message' },
    'locations': { list: 'location' },
    'partialFingerprints': { map: 'string' },
    'properties': { map: 'string' },
  },
  location: { physicalLocation: { object: 'physicalLocation' }, logicalLocations: { list: 'logicalLocation' } },
  physicalLocation: { 'artifactLocation!': { object: 'artifactLocation' }, 'region': { object: 'region' } },
  logicalLocation: { name: 'string', kind: 'string' },
  artifactLocation: { 'uri!': 'uri', 'uriBaseId': 'string' },
  region: { byteOffset: 'integer' },
}

/** Every place where `value` breaks the schema; empty when it is valid. */
export function sarifProblems(value: unknown, type = 'log', at = '$'): string[] {
  if (type === 'string') return typeof value === 'string' ? [] : [`${at} is no string`]
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${at} is no object`]
  const known = objects[type] ?? {}
  const entries = Object.entries(value as Record<string, unknown>)
  const missing = Object.keys(known)
    .filter((name) => name.endsWith('!') && !(name.slice(0, -1) in value))
    .map((name) => `${at}.${name} is missing`)
  return [
    ...missing,
    ...entries.flatMap(([name, inner]) => {
      const check = known[`${name}!`] ?? known[name]
      return check === undefined ? [`${at}.${name} is not in the schema`] : checkValue(inner, check, `${at}.${name}`)
    }),
  ]
}

function checkValue(value: unknown, check: Check, at: string): string[] {
  const good = (condition: boolean): string[] => (condition ? [] : [`${at} is wrong: ${JSON.stringify(value)}`])
  if (check === 'string' || check === 'boolean') return good(typeof value === check)
  if (check === 'integer') return good(Number.isSafeInteger(value))
  if (check === 'time') return good(typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/.test(value))
  // RFC 3986: only these characters, and a percent sign only before two hex digits.
  if (check === 'uri') return good(typeof value === 'string' && /^(?:[\w.~:/?#@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*$/.test(value))
  if (check instanceof Array) return good(check.includes(String(value)))
  if ('list' in check)
    return Array.isArray(value)
      ? value.flatMap((item, index) => sarifProblems(item, check.list, `${at}[${String(index)}]`))
      : [`${at} is no list`]
  if ('map' in check) return Object.entries(value as object).flatMap(([name, item]) => sarifProblems(item, check.map, `${at}.${name}`))
  return sarifProblems(value, check.object, at)
}
