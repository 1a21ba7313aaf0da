export type Severity = 'error' | 'warn' | 'info' | 'ignore'

/** Where a finding points: a path relative to the store's root (or absolute outside it), and a byte offset in it. */
export interface Place {
  readonly path: string
  /** Offset in bytes from the start of the file. */
  readonly offset?: number
}

export interface Finding {
  readonly id: FindingId
  readonly severity: Severity
  readonly session?: string
  readonly place?: Place
  readonly message: string
  /** The command or act that mends it. */
  readonly remedy?: string
}

interface FindingKind {
  readonly severity: Severity
  readonly title: string
  readonly remedy?: string
}

const repair = 'rewind-admin repair'

/** Every finding there is: its stable id, the severity it has unless told otherwise, what it means, what mends it. */
export const findingKinds = {
  'missing-backup': { severity: 'error', title: 'A checkpoint names a backup that is not there.', remedy: repair },
  'backups-missing': { severity: 'error', title: 'Checkpoints name backups, but the whole backup folder of the session is gone.', remedy: repair },
  'pruned-backup': { severity: 'info', title: 'A backup that only checkpoints beyond the cap name was removed by the agent, or by a cap of ours.' },
  'changed-after-seal': { severity: 'error', title: 'The bytes of a sealed backup are no longer the bytes that were sealed.', remedy: repair },
  'contradicts-transcript': { severity: 'error', title: 'A backup does not hold what the transcript says the file contained.', remedy: repair },
  'contradicts-record': { severity: 'error', title: 'The bytes of a backup are not those that its record says.', remedy: repair },
  'fork-differs': { severity: 'error', title: 'Two sessions hold the same backup with different bytes.', remedy: repair },
  'not-regular': { severity: 'error', title: 'A link, a folder, a pipe or a device stands where a backup should be.', remedy: repair },
  'unreadable': { severity: 'error', title: 'A path in the store cannot be read.', remedy: 'give the user who runs this read access; nothing was changed' },
  'size-differs': { severity: 'error', title: 'A backup has not the size that its record says.', remedy: 'none: it is never written back' },
  'damaged-record': { severity: 'warn', title: 'A record cannot be followed.', remedy: 'none: it is kept, and never taken for a file that did not exist' },
  'broken-link': { severity: 'error', title: 'A record refers to another one that cannot be followed.', remedy: 'none: it is kept and never followed' },
  'open-journal': { severity: 'warn', title: 'A restore of the agent did not end.', remedy: `${repair} --journals` },
  'damaged-journal': { severity: 'warn', title: 'The journal of a restore of the agent cannot be read.', remedy: 'none: it is kept' },
  'will-be-cleared': { severity: 'warn', title: 'The agent will delete the session when it is next opened.', remedy: 'rewind-admin migrate' },
  'odd-log': { severity: 'warn', title: 'A conversation log cannot be read whole.' },
  'marker-left': { severity: 'warn', title: 'A conversation holds markers of an old form that cannot be repaired.' },
  'checksum-unchecked': { severity: 'info', title: 'Checksums of conversation logs could not be compared.', remedy: 'use Node 22.15 or newer' },
  'unsafe-name': { severity: 'error', title: 'A record names a backup by something that is not a backup name.', remedy: 'none: the record is kept and never followed' },
  'newer-format': { severity: 'error', title: 'A line was written in a newer format than this version knows.', remedy: 'update rewind-admin; the session is left alone until then' },
  'odd-record': { severity: 'warn', title: 'A history line or record has an unexpected shape.', remedy: 'none: what can be read of it counts as in use' },
  'version-mismatch': { severity: 'warn', title: 'The version in a backup name is not the version of its record.' },
  'conflicting-records': { severity: 'warn', title: 'The same version of one path names different backups.' },
  'duplicate-checkpoint': { severity: 'warn', title: 'A checkpoint was recorded twice and its versions go back in time.' },
  'snapshot-flood': { severity: 'warn', title: 'The transcript holds far more snapshot lines than checkpoints.' },
  'damaged-line': { severity: 'warn', title: 'A line of the transcript is not valid JSON.', remedy: `${repair} --transcripts` },
  'spliced-line': { severity: 'warn', title: 'Two records share one line of the transcript.', remedy: `${repair} --transcripts` },
  'nul-run': { severity: 'warn', title: 'The transcript holds a run of NUL bytes.', remedy: `${repair} --transcripts` },
  'torn-tail': { severity: 'warn', title: 'The last line of the transcript is cut.', remedy: `${repair} --transcripts` },
  'oversized-line': { severity: 'warn', title: 'A line is too long to be parsed; it was searched for backup names only.' },
  'busy': { severity: 'info', title: 'The transcript changed while it was read.', remedy: 'run again when the session is quiet' },
  'transcript-missing': { severity: 'warn', title: 'A session has companion files but no transcript.' },
  'orphan-backups': { severity: 'warn', title: 'A backup folder belongs to no session.', remedy: 'rewind-admin expire' },
  'dropped-backup': { severity: 'info', title: 'Only checkpoints that the agent dropped name this backup.', remedy: 'rewind-admin cap' },
  'failed-backup': { severity: 'warn', title: 'The agent recorded that it could not back a file up.', remedy: 'none: the record is kept, and the file is left alone there' },
  'empty-backup': { severity: 'info', title: 'A backup is empty although other versions of its path are not.' },
  'shared-inode': { severity: 'warn', title: 'Backups of two sessions are one file, and the agent writes into backups.', remedy: `${repair} --unlink` },
  'unreachable-checkpoints': { severity: 'error', title: 'Checkpoints carry ids of another session, so the agent refuses to go back to them.', remedy: 'rewind-admin rewind goes back to them' },
  'broken-chain': { severity: 'warn', title: 'A record hangs off one that is not there; the agent does not reach what stands before it.' },
  'unreferenced-backup': { severity: 'info', title: 'No line of the transcript names this backup.' },
  'foreign-file': { severity: 'info', title: 'A name in the store is not one that the agent makes; it is left alone.' },
  'foreign-lines': { severity: 'info', title: 'The transcript holds lines of another session.' },
  'duplicate-session': { severity: 'warn', title: 'The same session id has transcripts in several project folders.' },
  'nested-slug': { severity: 'warn', title: 'A project folder lies inside another project folder.' },
  'snapshot-without-message': { severity: 'info', title: 'A checkpoint belongs to no message of the transcript.' },
  'over-cap': { severity: 'info', title: 'The session has more checkpoints than the cap.', remedy: 'rewind-admin cap' },
  'no-checkpoints': { severity: 'info', title: 'The session has no checkpoints.' },
  'checkpointing-stopped': { severity: 'warn', title: 'Files were edited long after the last checkpoint.' },
  'lossy-backup': { severity: 'warn', title: 'A backup was written through a lossy text decoding; the original bytes are gone.', remedy: 'none: the original bytes were never stored' },
  'path-hash-differs': { severity: 'info', title: 'The name of a backup is not the hash of its path; the project may have moved.' },
  'identical-versions': { severity: 'info', title: 'Two consecutive versions of a path have the same bytes and mode.' },
  'future-activity': { severity: 'warn', title: 'The transcript holds a time in the future.', remedy: 'check the clock of this machine' },
  'wide-mode': { severity: 'info', title: 'Backups can be read by other users of this machine.', remedy: 'chmod 700 the file-history folder' },
  'newer-client': { severity: 'info', title: 'Sessions were written by a newer client than this version was tested with.' },
  'global-file-damaged': { severity: 'warn', title: 'A global file of the agent cannot be parsed; project names come from transcripts only.' },
  'state-damaged': { severity: 'error', title: 'The state of a session cannot be used, or not all of it.', remedy: `${repair} <session>` },
  'state-wiped': { severity: 'error', title: 'The state of a session was replaced by an empty one while its backups are there.', remedy: 'copy the session folder away before the agent opens the session again' },
  'reusable-orphan': { severity: 'warn', title: 'A leftover backup has the name that the agent gives next, and would be taken for the new one.' },
  'odd-path': { severity: 'warn', title: 'A tracked path names no file of this machine, or the same one as another path.' },
  'version-lies': { severity: 'warn', title: 'A conversation says a newer version than its records have.' },
  'stale-temp': { severity: 'info', title: 'A temporary file of an interrupted run is left.', remedy: 'rewind-admin doctor' },
  'settings-unknowable': { severity: 'error', title: 'A settings file that can set the retention period cannot be used; nothing will expire.', remedy: 'mend or remove the settings file' },
  'registry-damaged': { severity: 'warn', title: 'An entry of the registry of running processes cannot be read; its session counts as running.' },
  'over-budget': { severity: 'warn', title: 'Sessions take up more than they may, and the others must stay.', remedy: 'rewind-admin report shows what is large; the trash frees its bytes when it is emptied' },
  'clock-looks-wrong': { severity: 'warn', title: 'The clock of this machine does not fit the times in the store; nothing will expire.', remedy: 'check the clock of this machine' },
  'unfinished-journal': { severity: 'warn', title: 'A run was interrupted before it was done.', remedy: 'rewind-admin run nightly --apply' },
  'last-run-failed': { severity: 'warn', title: 'The last scheduled run did not end well.' },
  'removal-held': { severity: 'warn', title: 'A job failed, so jobs remove nothing until somebody has looked or a day has passed.', remedy: 'look at what failed, then: rewind-admin doctor --ack' },
  'notification-failed': { severity: 'warn', title: 'A ping, a hook or the metrics file of a job failed; the job itself was not touched by it.' },
  'sidecar-damaged': { severity: 'warn', title: 'A file or folder of our own beside the store is not as we made it.' },
  'memory-left': { severity: 'info', title: 'A project moved, and what belongs to none of its sessions stayed in the old place.' },
  'conversation-left': { severity: 'info', title: 'A project moved, and the conversation still names the old folder.' },
  'no-metadata': { severity: 'info', title: 'A session has backups from before its agent recorded what they are of.' },
  'session-elsewhere': { severity: 'info', title: 'A store of another agent has the session too, without checkpoints; it is not the one that is meant.' },
  'checkpoints-from-state': { severity: 'info', title: 'Checkpoints that the transcript no longer names were read from our own state file.' },
  'state-unusable': { severity: 'warn', title: 'Our own state file of a session cannot be used; only the transcript counts.', remedy: 'rewind-admin migrate' },
  'schedule-path-gone': { severity: 'error', title: 'A scheduled job names a program or a script that is no longer there.', remedy: 'rewind-admin schedule install' },
  'hook-path-gone': { severity: 'error', title: 'A hook of an agent starts a program or a script that is no longer there.', remedy: 'rewind-admin hook install --apply' },
  'schedule-inactive': { severity: 'error', title: 'A job is written down for the scheduler, but the scheduler does not have it.', remedy: 'rewind-admin schedule install' },
  'schedule-changed': { severity: 'warn', title: 'A scheduled job is no longer as it was written.', remedy: 'rewind-admin schedule install' },
  'schedule-twice': { severity: 'warn', title: 'A job is in two schedulers at once.', remedy: 'rewind-admin schedule install' },
  'scheduler-silent': { severity: 'warn', title: 'A scheduler is there and cannot be asked.' },
  'linger-off': { severity: 'warn', title: 'Timers of this user stop when the user logs out.', remedy: 'loginctl enable-linger' },
  'first-run-preview': { severity: 'info', title: 'The first scheduled run on a store is a preview; the next one acts.' },
  'checkpointing-off': { severity: 'info', title: 'A setting stops the agent from making checkpoints.' },
} as const satisfies Record<string, FindingKind>

export type FindingId = keyof typeof findingKinds

/** What to do about a kind of finding in general, or `undefined` when nothing needs doing. */
export function remedyOf(id: FindingId): string | undefined {
  const kind: FindingKind = findingKinds[id]
  return kind.remedy
}

/** Makes a finding with the severity and remedy of its kind, unless given. */
export function finding(
  id: FindingId,
  message: string,
  at: { session?: string; path?: string; offset?: number; severity?: Severity; remedy?: string } = {},
): Finding {
  const remedy = at.remedy ?? remedyOf(id)
  return {
    id,
    severity: at.severity ?? findingKinds[id].severity,
    ...(at.session === undefined ? {} : { session: at.session }),
    ...(at.path === undefined ? {} : { place: { path: at.path, ...(at.offset === undefined ? {} : { offset: at.offset }) } }),
    message,
    ...(remedy === undefined ? {} : { remedy }),
  }
}

const ranks: Record<Severity, number> = { error: 3, warn: 2, info: 1, ignore: 0 }

/** True when `severity` is `floor` or worse. */
export function isAtLeast(severity: Severity, floor: Severity): boolean {
  return ranks[severity] >= ranks[floor] && severity !== 'ignore'
}

/** True when `text` names a kind of finding. */
export function isFindingId(text: string): text is FindingId {
  return Object.hasOwn(findingKinds, text)
}

/** `path` or `path#offset`: a finding's place as one word, as the JSON contract has it. */
export function placeText(place: Place): string {
  return place.offset === undefined ? place.path : `${place.path}#${String(place.offset)}`
}
