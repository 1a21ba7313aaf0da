import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Conversation, idOf, nameOf, putBackup, type SampleSession } from './sample-conversation.js'

/** What `writeSampleStore` wrote. */
export interface SampleStore {
  readonly home: string
  /** The store's root, `<home>/.claude`. */
  readonly root: string
  /** Folders of the projects. */
  readonly projects: readonly string[]
  readonly sessions: readonly SampleSession[]
  readonly fork: { readonly session: string; readonly of: string }
  /** Id of the backup folder that belongs to no session. */
  readonly orphan: string
  /** A backup that a kept checkpoint names and that is not there. */
  readonly missing: { readonly session: string; readonly backup: string }
}

const day = 86_400_000
const minute = 60_000

/**
 * Writes a small Claude Code home with neutral content, to show the commands where no store is found: three projects,
 * eight sessions of four generations (formats/claude-code section 2), one of them a fork, one beyond the cap, one with a
 * backup missing, and backups of no session. The same arguments write the same bytes.
 *
 * @param home an existing folder; nothing outside of it is touched, and `<home>/.claude` must not exist (EEXIST).
 * @param now milliseconds since 1970; the sessions are 1 to 60 days older.
 */
export function writeSampleStore(home: string, now: number): SampleStore {
  const root = join(home, '.claude')
  mkdirSync(root, { mode: 0o700 })
  for (const folder of ['projects', 'file-history']) mkdirSync(join(root, folder), { mode: 0o700 })
  writeFileSync(join(root, 'settings.json'), '{\n  "cleanupPeriodDays": 30\n}\n', { mode: 0o600 })
  const [birds, boxes, pond] = ['bird-notes', 'nest-box-map', 'pond-survey'].map((name) => join(home, 'projects', name)) as [string, string, string]
  const start = (label: string, project: string, version: string, age: number): Conversation =>
    new Conversation({ root, id: idOf(label), project, version, time: now - age * day - 40 * minute })

  const first = start('first list', birds, '2.0.64', 45)
  tell(first, 'sightings.md', ['# Sightings\n', '- robin, 2\n', '- wren, 1\n', '- heron, 1\n'])
  const totals = start('totals', birds, '2.1.112', 12)
  tell(totals, 'totals.csv', ['species,count\n', 'robin,2\n', 'wren,1\n'])
  const report = start('monthly report', birds, '2.1.332', 2)
  tell(report, 'report.md', ['# November\n', 'Two robins at the feeder.\n', 'A heron at dawn.\n'])
  const shorter = report.fork(idOf('shorter report'), now - day - 20 * minute)
  tell(shorter, 'summary.md', ['Quiet month.\n', 'One heron.\n'])
  const boxMap = start('box map', boxes, '2.0.64', 60)
  tell(boxMap, 'boxes.json', ['[\n', '  "oak 3",\n', '  "birch 1"\n', ']\n'])
  const visits = start('daily visits', boxes, '2.1.208', 8)
  tell(visits, 'visits.log', Array.from({ length: 112 }, (_, index) => `visit ${String(index + 1)}: all quiet\n`))
  const depths = start('depths', pond, '2.1.332', 5)
  tell(depths, 'depths.txt', ['north 40 cm\n', 'south 55 cm\n', 'middle 90 cm\n', 'outlet 20 cm\n'])
  const plants = start('plants', pond, '2.1.112', 33)
  tell(plants, 'plants.md', ['# Plants\n', '- water mint\n', '- yellow flag\n'])

  const orphan = idOf('a session that is gone')
  putBackup(join(root, 'file-history', orphan), nameOf(join(pond, 'old.txt'), 1), 'north 42 cm\n', now - 50 * day)
  const backup = nameOf(join(pond, 'depths.txt'), 3)
  rmSync(join(root, 'file-history', depths.id, backup))
  const sessions = [first, totals, report, shorter, boxMap, visits, depths, plants].map((each) => each.end())
  const fork = { session: shorter.id, of: report.id }
  return { home, root, projects: [birds, boxes, pond], sessions, fork, orphan, missing: { session: depths.id, backup } }
}

/** One prompt for each line: the first one creates the file, each of the others adds its line; a last one looks. */
function tell(conversation: Conversation, file: string, lines: readonly string[]): void {
  lines.forEach((_, index) => {
    conversation.prompt(index === 0 ? `Start ${file}` : `Add line ${String(index + 1)} to ${file}`)
    conversation.write(file, lines.slice(0, index).join(''), lines.slice(0, index + 1).join(''))
  })
  conversation.prompt('Is it complete?')
}
