import { createHash, randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** A session id made from a number. */
export function sessionId(number) {
  const hex = createHash('sha256').update(`session ${number}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function uuid(text) {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/**
 * A store with `sessions` sessions, each of `prompts` prompts that edit two new files, so that there are twice as many
 * backups of `size` random bytes; the lines are those of generation G4. Sessions are a minute apart, the newest at `at`,
 * milliseconds since 1970. The tool results leave out the text of the files.
 */
export function writeStore(home, { sessions, prompts = 5, size, at = Date.now() - 3_600_000 }) {
  const root = join(home, '.claude')
  mkdirSync(join(root, 'projects', '-srv-notes'), { recursive: true, mode: 0o700 })
  mkdirSync(join(root, 'file-history'), { mode: 0o700 })
  for (let number = 0; number < sessions; number += 1) {
    const id = sessionId(number)
    const folder = join(root, 'file-history', id)
    mkdirSync(folder, { mode: 0o700 })
    const lines = conversation(id, prompts, at - number * 60_000, (name) => {
      writeFileSync(join(folder, name), randomBytes(size), { mode: 0o600 })
    })
    writeFileSync(join(root, 'projects', '-srv-notes', `${id}.jsonl`), `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`, { mode: 0o600 })
  }
  return root
}

function conversation(id, prompts, at, backUp) {
  const common = { userType: 'external', entrypoint: 'cli', cwd: '/srv/notes', sessionId: id, version: '2.1.332', gitBranch: 'main' }
  const lines = []
  const tracked = {}
  let parent = null
  const say = (name, type, message, timestamp, more = {}) => {
    const own = uuid(`${id} ${name}`)
    lines.push({ parentUuid: parent, isSidechain: false, type, message, uuid: own, timestamp, ...more, ...common })
    parent = own
    return own
  }
  for (let prompt = 0; prompt < prompts; prompt += 1) {
    const time = new Date(at + prompt * 5000).toISOString()
    const own = say(`prompt ${prompt}`, 'user', { role: 'user', content: `Put the date into both notes of part ${prompt}, please.` }, time)
    const snapshot = { messageId: own, trackedFileBackups: { ...tracked }, timestamp: time }
    lines.push({ type: 'file-history-snapshot', messageId: own, snapshot, isSnapshotUpdate: false })
    for (const half of ['a', 'b']) {
      const path = `notes/${prompt}${half}.txt`
      const name = `${createHash('sha256').update(`/srv/notes/${path}`).digest('hex').slice(0, 16)}@v1`
      const edit = { file_path: `/srv/notes/${path}`, old_string: 'Date:', new_string: 'Date: 2026-11-30' }
      const maker = say(`call ${path}`, 'assistant', { role: 'assistant', content: [{ type: 'tool_use', id: `toolu_${prompt}${half}`, name: 'Edit', input: edit }], usage: { input_tokens: 5, output_tokens: 9 } }, time)
      tracked[path] = { backupFileName: name, version: 1, backupTime: time, realParentDir: '/srv/notes/notes' }
      lines.push({ type: 'file-history-delta', messageId: maker, snapshotMessageId: own, trackingPath: path, backup: tracked[path], timestamp: time })
      backUp(name)
      const result = { filePath: edit.file_path, oldString: edit.old_string, newString: edit.new_string, userModified: false, replaceAll: false }
      say(`result ${path}`, 'user', { role: 'user', content: [{ tool_use_id: `toolu_${prompt}${half}`, type: 'tool_result', content: 'The file was updated.' }] }, time, { toolUseResult: result, sourceToolAssistantUUID: maker })
    }
    say(`reply ${prompt}`, 'assistant', { role: 'assistant', content: [{ type: 'text', text: 'Both notes have the date now.' }], usage: { input_tokens: 5, output_tokens: 9 } }, time)
  }
  return lines
}

/** One transcript of about `bytes` bytes with a snapshot line in every 200; returns the path. */
export function writeTranscript(home, bytes) {
  const folder = join(home, '.claude', 'projects', '-srv-notes')
  mkdirSync(folder, { recursive: true })
  const id = sessionId(0)
  const path = join(folder, `${id}.jsonl`)
  const fd = openSync(path, 'w', 0o600)
  const words = 'The wader stood in the shallows and \\"called\\" twice, {\\"type\\":\\"text\\"}; nobody answered. '.repeat(16)
  let written = 0
  let number = 0
  while (written < bytes) {
    const lines = []
    for (let index = 0; index < 2000; index += 1) {
      number += 1
      const time = new Date(1_767_225_600_000 + number * 1000).toISOString()
      const own = uuid(String(number))
      lines.push(
        number % 200 === 0
          ? `{"type":"file-history-snapshot","messageId":"${own}","snapshot":{"messageId":"${own}","trackedFileBackups":{"a.txt":{"backupFileName":"7833baf1a021bf2a@v2","version":2,"backupTime":"${time}"}},"timestamp":"${time}"},"isSnapshotUpdate":false}\n`
          : `{"parentUuid":"${own}","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"text","text":"${words}"}]},"uuid":"${own}","timestamp":"${time}","userType":"external","cwd":"/srv/notes","sessionId":"${id}","version":"2.1.332","gitBranch":"main"}\n`,
      )
    }
    written += writeSync(fd, lines.join(''))
  }
  closeSync(fd)
  return path
}

/** One transcript with `lines` snapshot lines of one message, their times rising (R43); returns the path. */
export function writeFlood(home, lines) {
  const folder = join(home, '.claude', 'projects', '-srv-notes')
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${sessionId(1)}.jsonl`)
  const fd = openSync(path, 'w', 0o600)
  const own = uuid('flood')
  for (let start = 0; start < lines; start += 10_000) {
    const block = []
    for (let index = start; index < Math.min(lines, start + 10_000); index += 1) {
      const time = new Date(1_767_225_600_000 + index * 32).toISOString()
      block.push(`{"type":"file-history-snapshot","messageId":"${own}","snapshot":{"messageId":"${own}","trackedFileBackups":{"a.txt":{"backupFileName":"7833baf1a021bf2a@v1","version":1,"backupTime":"2026-01-01T00:00:00.000Z"}},"timestamp":"${time}"},"isSnapshotUpdate":${String(index > 0)}}\n`)
    }
    writeSync(fd, block.join(''))
  }
  closeSync(fd)
  return path
}

/**
 * One session in which one prompt touched `files` files of `size` bytes below `project`: a backup of each, and the files
 * themselves with other bytes. Returns the root and the ids of the session and of the prompt.
 */
export function writeWide(home, project, { files, size, at = Date.now() - 3_600_000 }) {
  const root = join(home, '.claude')
  const session = sessionId(7)
  const folder = join(root, 'file-history', session)
  mkdirSync(join(root, 'projects', '-srv-notes'), { recursive: true, mode: 0o700 })
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  mkdirSync(project, { recursive: true })
  const time = new Date(at).toISOString()
  const prompt = uuid('wide prompt')
  const common = { userType: 'external', entrypoint: 'cli', cwd: project, sessionId: session, version: '2.1.332', gitBranch: 'main' }
  const lines = [
    { parentUuid: null, isSidechain: false, type: 'user', message: { role: 'user', content: 'Put the date into every note.' }, uuid: prompt, timestamp: time, ...common },
    { type: 'file-history-snapshot', messageId: prompt, snapshot: { messageId: prompt, trackedFileBackups: {}, timestamp: time }, isSnapshotUpdate: false },
  ]
  for (let number = 0; number < files; number += 1) {
    const path = `note-${number}.txt`
    const name = `${createHash('sha256').update(join(project, path)).digest('hex').slice(0, 16)}@v1`
    writeFileSync(join(folder, name), randomBytes(size), { mode: 0o600 })
    const backup = { backupFileName: name, version: 1, backupTime: time, realParentDir: project }
    lines.push({ type: 'file-history-delta', messageId: uuid(`reply ${number}`), snapshotMessageId: prompt, trackingPath: path, backup, timestamp: time })
  }
  lines.push({ parentUuid: prompt, isSidechain: false, message: { role: 'assistant', content: [{ type: 'text', text: 'done' }] }, type: 'assistant', uuid: uuid('wide reply'), timestamp: time, ...common })
  writeFileSync(join(root, 'projects', '-srv-notes', `${session}.jsonl`), `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`, { mode: 0o600 })
  return { root, session, prompt }
}

/** Gives every file of a wide store other bytes, as a user would who wants them back. */
export function changeWide(project, { files, size }) {
  for (let number = 0; number < files; number += 1) writeFileSync(join(project, `note-${number}.txt`), randomBytes(size), { mode: 0o600 })
}
