import { homedir } from 'node:os'

/** The home of whoever runs this. */
export function homeFolder(): string {
  try {
    return homedir()
  } catch {
    // A user id without an entry, as in containers: the home there is the root folder.
    return '/'
  }
}

/** The folder that this was started in. */
export function workingFolder(): string {
  try {
    return process.cwd()
  } catch {
    // The folder was removed under us; only relative paths need it, and the root folder makes nothing of them.
    return '/'
  }
}
