// Whether a report is what others may rely on: `validate.js junit|sarif <report>` by the schema of the format,
// `validate.js github <report> <json report>` by reading the workflow commands back, as GitHub documents them.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import Ajv from 'ajv'
import { validateXML } from 'xmllint-wasm'

const require = createRequire(import.meta.url)
const sarifSchema = require('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json')
const draft04 = require('ajv/lib/refs/json-schema-draft-04.json')
const junitSchema = new URL('junit.xsd', import.meta.url)
const levels = { error: 'error', warn: 'warning', info: 'notice' }

const validators = {
  async junit(report) {
    const document = { fileName: 'report.xml', contents: readFileSync(report, 'utf8') }
    const schema = { fileName: 'junit.xsd', contents: readFileSync(junitSchema, 'utf8') }
    const { valid, errors } = await validateXML({ xml: [document], schema: [schema] })
    return valid ? [] : errors.map(({ message }) => message)
  },

  sarif(report) {
    // The schema is one of draft 04, which names itself by `id`.
    const ajv = new Ajv({ allErrors: true, format: 'full', schemaId: 'id', meta: false })
    ajv.addMetaSchema(draft04)
    const validate = ajv.compile(sarifSchema)
    validate(JSON.parse(readFileSync(report, 'utf8')))
    return (validate.errors ?? []).map(({ dataPath, message }) => `${dataPath} ${message}`)
  },

  github(report, json) {
    const { root, findings, errors } = JSON.parse(readFileSync(json, 'utf8'))
    const lines = readFileSync(report, 'utf8').trimEnd().split('\n')
    const commands = lines.slice(0, -1).map(commandOf)
    const expected = [
      ...findings.map(({ id, severity, place }) => [levels[severity], `rewind-admin ${id}`, place === undefined ? undefined : resolve(root, place.replace(/#\d+$/, ''))]),
      ...errors.map(({ code, path }) => ['error', `rewind-admin ${code}`, path]),
    ]
    const problems = commands.flatMap((command) => (command.problem === undefined ? [] : [command.problem]))
    if (commands.length !== expected.length) problems.push(`${commands.length} annotations of ${expected.length}`)
    for (const [at, [name, title, file]] of expected.entries()) {
      const command = commands[at]
      if (command?.name !== name || command.properties.title !== title || command.properties.file !== file)
        problems.push(`${JSON.stringify([name, title, file])} was read back as ${JSON.stringify(command)}`)
    }
    return problems
  },
}

/** A workflow command as the runner takes it apart: at the first `::` after the name, at commas, at the first `=`; then escapes. */
function commandOf(line) {
  const parts = /^::([a-z]+)(?: (.*?))?::(.*)$/.exec(line)
  if (parts === null) return { problem: `no workflow command: ${JSON.stringify(line)}` }
  const [, name, list = '', message] = parts
  const bare = [list, message].flatMap((text) => text.match(/%(?!25|0D|0A|3A|2C)|[\r\n]/g) ?? [])
  if (bare.length > 0) return { problem: `not escaped: ${JSON.stringify(line)}` }
  const pairs = list.split(',').map((pair) => [pair.slice(0, pair.indexOf('=')), unescaped(pair.slice(pair.indexOf('=') + 1), '3A|2C')])
  return { name, properties: Object.fromEntries(pairs), message: unescaped(message, '') }
}

function unescaped(text, more) {
  const pattern = new RegExp(`%(25|0D|0A${more === '' ? '' : `|${more}`})`, 'g')
  return text.replaceAll(pattern, (_, digits) => String.fromCharCode(Number.parseInt(digits, 16)))
}

const [, , kind, ...files] = process.argv
const validator = validators[kind]
if (validator === undefined) throw new Error('usage: validate.js junit|sarif|github <report> [json report]')
const problems = await validator(...files)
for (const problem of problems.slice(0, 10)) console.error(problem)
process.exitCode = problems.length > 0 ? 1 : 0
