// `npm run bench [name …]`: whole-process times as ratios against coreutils on the same generated stores, in the same run.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { printMemory, printRatio, ratio, ratioOf, shell, timed } from './measure.js'
import { changeWide, sessionId, writeFlood, writeStore, writeTranscript, writeWide } from './stores.js'

const bin = fileURLToPath(new URL('../../bin/rewind-admin.js', import.meta.url))
const scan = fileURLToPath(new URL('scan.js', import.meta.url))
const library = fileURLToPath(new URL('verify.js', import.meta.url))
const records = fileURLToPath(new URL('record.js', import.meta.url))
const actor = fileURLToPath(new URL('act.js', import.meta.url))
const ours = (...args) => timed(process.execPath, [bin, ...args], { accept: [0, 1] }).seconds

/** Seconds of the library call; throws when a good store is not found to be good, or not all of it was looked at. */
function verified(root, backups, options = {}) {
  const { milliseconds, exitCode, summary } = JSON.parse(timed(process.execPath, [library, root, JSON.stringify(options)]).stdout)
  if (exitCode !== 0 || summary.backups !== backups) throw new Error(`verify of ${root}: ${JSON.stringify({ exitCode, summary })}`)
  const expected = options.quick === true ? 0 : backups
  if (summary.digested !== expected) throw new Error(`${expected} backups should have been read: ${JSON.stringify(summary)}`)
  return milliseconds / 1000
}

/** Seconds that coreutils take for the digests of all backups, `each` files for one process. */
function sums(root, each) {
  return shell(`find '${root}/file-history' -type f -print0 | xargs -0 -n ${each} -P2 sha256sum > /dev/null`).seconds
}

/** What one operation of the library took: `{milliseconds, megabytes}`. */
function acted(act, root, home, ...words) {
  return JSON.parse(timed(process.execPath, [actor, act, root, home, ...words]).stdout)
}

const benches = {
  version() {
    printRatio('--version / node -e 0', ratio(() => ours('--version'), () => timed(process.execPath, ['-e', '0']).seconds, 9), 2.5)
  },
  hook(home) {
    mkdirSync(join(home, 'project'), { recursive: true })
    const calls = (event, name) => {
      const input = JSON.stringify({ session_id: 'bench', cwd: join(home, 'project'), hook_event_name: event, prompt: name, tool_name: 'Write', tool_input: { file_path: join(home, 'project', name) } })
      return timed(process.execPath, [bin, 'hook', 'claude-code', '--root', join(home, 'records')], { input }).seconds
    }
    const empty = () => timed(process.execPath, ['-e', '0']).seconds
    let count = 0
    const edit = () => {
      count += 1
      writeFileSync(join(home, 'project', `${count}.txt`), Buffer.alloc(100_000, `${count} bittern `))
      return calls('PreToolUse', `${count}.txt`)
    }
    printRatio('hook before an edit of 100 kB / node -e 0', ratio(edit, empty, 9), 3)
    printRatio('hook at a prompt / node -e 0', ratio(() => calls('UserPromptSubmit', 'go on'), empty, 9), 3)
  },
  recorder(home) {
    const recorded = (what, folder, count) => ratioOf(JSON.parse(timed(process.execPath, [records, what, join(home, folder), String(count)]).stdout))
    printRatio('beforeEdit of 100 kB / cp and fsync', recorded('edits', 'edits', 40), 2)
    printRatio('beginTurn, 2,000 unchanged / find -printf', recorded('turns', 'turns', 20), 1.5)
  },
  small(home) {
    const root = writeStore(home, { sessions: 2000, size: 8192 })
    const base = () => sums(root, 256)
    printRatio('verify(), 20,000 x 8 kB / xargs sha256sum', ratio(() => verified(root, 20_000), base), 0.6)
    printRatio('  the whole command', ratio(() => ours('verify', '--root', root, '--json'), base))
    ours('verify', '--root', root, '--json', '--seal')
    printRatio('  verify() when sealed', ratio(() => verified(root, 20_000), base))
    const quick = () => verified(root, 20_000, { quick: true })
    printRatio('verify({quick}) / verify(), 20,000 x 8 kB', ratio(quick, () => verified(root, 20_000)), 0.25)
  },
  medium(home) {
    const root = writeStore(home, { sessions: 200, size: 400_000 })
    printRatio('verify(), 2,000 x 400 kB / xargs sha256sum', ratio(() => verified(root, 2000), () => sums(root, 256)))
    ours('verify', '--root', root, '--json', '--seal')
    printRatio('verify({quick}) / verify(), 2,000 x 400 kB', ratio(() => verified(root, 2000, { quick: true }), () => verified(root, 2000)), 0.25)
  },
  large(home) {
    const root = writeStore(home, { sessions: 2, size: 100_000_000 })
    printRatio('verify(), 20 x 100 MB / xargs -n 1 sha256sum', ratio(() => verified(root, 20), () => sums(root, 1), 3), 0.4)
  },
  single(home) {
    const root = writeStore(home, { sessions: 1, prompts: 10, size: 100_000_000 })
    printRatio('  the same in one session', ratio(() => verified(root, 20), () => sums(root, 1), 3), 0.4)
  },
  transcript(home) {
    const path = writeTranscript(home, 1_000_000_000)
    let memory = 0
    const scanned = () => {
      const result = JSON.parse(timed(process.execPath, [scan, join(home, '.claude')]).stdout)
      memory = Math.max(memory, result.megabytes)
      return result.milliseconds / 1000
    }
    const grep = () => shell(`LC_ALL=C grep -cF '"file-history-snapshot"' '${path}'`).seconds
    printRatio('scan of a 1 GB transcript / grep -cF', ratio(scanned, grep), 1.5)
    printMemory('scan of a 1 GB transcript, peak memory', memory, 150)
  },
  flood(home) {
    writeFlood(home, 1_000_000)
    const result = JSON.parse(timed(process.execPath, [scan, join(home, '.claude')]).stdout)
    printMemory('1,000,000 snapshot lines, peak memory', result.megabytes, 200)
    if (result.checkpoints !== 1) throw new Error(`one checkpoint expected, ${result.checkpoints} found`)
  },
  expire(home) {
    const root = writeStore(home, { sessions: 2000, size: 8192 })
    const later = new Date(Date.now() + 60 * 86_400_000).toISOString()
    let run = ''
    const expired = () => {
      const args = [bin, 'expire', '--apply', '--root', root, '--now', later, '--older-than', '30d', '--max-delete', '100%', '--no-grace', '--json']
      const { seconds, stdout } = timed(process.execPath, args)
      const { plan, runId } = JSON.parse(stdout)
      if (plan.length !== 2000) throw new Error(`2000 sessions should have gone, ${plan.length} did`)
      run = runId
      return seconds
    }
    const removed = () => {
      ours('trash', 'restore', run, '--root', root)
      shell(`rm -rf '${home}/copy' && cp -a '${root}' '${home}/copy' && rm -rf '${home}/copy/.rewind-admin'`)
      return shell(`rm -rf '${home}/copy'`).seconds
    }
    printRatio('expire --apply, 20,000 backups / rm -rf', ratio(expired, removed, 3), 4)
  },
  nightly(home) {
    const perSession = (sessions) => {
      const place = join(home, String(sessions))
      mkdirSync(place)
      const root = writeStore(place, { sessions, prompts: 1, size: 200 })
      acted('nightly', root, place)
      const results = [1, 2, 3].map(() => acted('nightly', root, place))
      return { milliseconds: Math.min(...results.map((result) => result.milliseconds)) / sessions, megabytes: Math.max(...results.map((result) => result.megabytes)) }
    }
    const few = perSession(2000)
    const many = perSession(20_000)
    printRatio('nightly, time a session, 20,000 / 2,000', { ratio: many.milliseconds / few.milliseconds, ours: many.milliseconds, base: few.milliseconds, least: 0, most: 0 }, 1.25)
    printMemory('nightly on 20,000 sessions, peak memory', many.megabytes, 300)
  },
  fork(home) {
    const { root, session } = writeWide(home, join(home, 'notes'), { files: 20_000, size: 100 })
    const target = sessionId(8)
    const history = `${root}/file-history`
    const forked = () => {
      shell(`rm -rf '${history}/${target}' '${root}/projects/-srv-notes/${target}.jsonl'`)
      return acted('fork', root, home, session, target).milliseconds / 1000
    }
    const linked = () => {
      shell(`rm -rf '${history}/copy'`)
      const { seconds } = shell(`cp -al '${history}/${session}' '${history}/copy'`)
      shell(`rm -rf '${history}/copy'`)
      return seconds
    }
    printRatio('fork of 20,000 backups / cp -al', ratio(forked, linked), 3)
  },
  rewind(home) {
    const project = join(home, 'notes')
    const shape = { files: 2000, size: 8192 }
    const { root, session, prompt } = writeWide(home, project, shape)
    const rewound = () => {
      changeWide(project, shape)
      return acted('rewind', root, home, session, prompt).milliseconds / 1000
    }
    const copied = () => {
      shell(`rm -rf '${home}/copy'`)
      return shell(`cp -a '${project}' '${home}/copy'`).seconds
    }
    printRatio('rewind of 2,000 files of 8 kB / cp -a', ratio(rewound, copied), 3)
    const nothing = () => acted('changes', root, home, session, prompt).milliseconds / 1000
    // The rewind changes all files first, so it goes second: the answer is asked for when nothing is left to change.
    rewound()
    printRatio('nothing-to-change answer / rewind', ratio(nothing, rewound), 0.2)
  },
}

const asked = process.argv.slice(2)
for (const [name, bench] of Object.entries(benches)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  const home = mkdtempSync(join(tmpdir(), 'rewind-admin-bench-'))
  try {
    bench(home)
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}
