import { membersAt } from '../../fs/json-members.js'

/** What becomes of a record in a fork (formats/qwen-code section 7). */
export interface ForkedRecord {
  readonly uuid: string
  /** The record before it in the one line of the fork. */
  readonly parent: string | null
  readonly oldId: string
  readonly newId: string
}

const lineFeed = '\n'

/**
 * The bytes of a record in the fork: another session id and parent, and where it comes from; every other byte stays. The id
 * of the session stands before the number in prompt ids, and only in those of snapshots.
 */
export function forkedRecord(record: Buffer, { uuid, parent, oldId, newId }: ForkedRecord, isSnapshot: boolean): Buffer {
  const from = Buffer.from(JSON.stringify({ sessionId: oldId, messageUuid: uuid }))
  const wanted = new Map([
    ['parentUuid', Buffer.from(JSON.stringify(parent))],
    ['sessionId', Buffer.from(JSON.stringify(newId))],
    ['forkedFrom', from],
  ])
  const parts: Buffer[] = []
  let at = 0
  let end = record.length
  for (const member of membersAt(record, record.indexOf('{'))) {
    const value = wanted.get(member.key)
    end = member.end
    if (value === undefined) continue
    // Of a key that stands twice both are replaced: readers take either.
    parts.push(record.subarray(at, member.value), value)
    at = member.end
  }
  parts.push(record.subarray(at, end))
  const missing = [...wanted].filter(([key]) => !membersAt(record, record.indexOf('{')).some((member) => member.key === key))
  for (const [key, value] of missing) parts.push(Buffer.from(`,${JSON.stringify(key)}:`), value)
  parts.push(record.subarray(end), Buffer.from(lineFeed))
  const bytes = Buffer.concat(parts)
  return isSnapshot ? withPromptIds(bytes, oldId, newId) : bytes
}

/** The prompt id that stands for another one in a fork; those of other sessions stay. */
export function forkedPromptId(promptId: string, oldId: string, newId: string): string {
  return promptId.startsWith(`${oldId}########`) ? newId + promptId.slice(oldId.length) : promptId
}

function withPromptIds(bytes: Buffer, oldId: string, newId: string): Buffer {
  // A quote inside of a text is escaped, so this can only be a key. Latin-1 keeps every byte.
  const keys = new RegExp(`("promptId"\\s*:\\s*")${oldId}(?=########)`, 'g')
  return Buffer.from(bytes.toString('latin1').replace(keys, (_, key: string) => key + newId), 'latin1')
}
