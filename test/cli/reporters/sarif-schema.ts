import { createRequire } from 'node:module'
import Ajv from 'ajv'

const require = createRequire(import.meta.url)
// The schema is one of draft 04, which names itself by `id`.
const ajv = new Ajv({ allErrors: true, format: 'full', schemaId: 'id', meta: false, logger: false })
ajv.addMetaSchema(require('ajv/lib/refs/json-schema-draft-04.json') as object)
const validate = ajv.compile(require('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json') as object)

/** Every place where `value` breaks the schema of SARIF 2.1.0; empty when it is valid. */
export function sarifProblems(value: unknown): string[] {
  return validate(value) === true ? [] : (validate.errors ?? []).map(({ dataPath, message }) => `${dataPath} ${message ?? ''}`)
}
