import { posix, win32 } from 'node:path'

/** Where we keep what is no setting: the XDG state folder, or `%LOCALAPPDATA%` on Windows. */
export function stateFolder({ env, home, platform }: { readonly env: Readonly<Record<string, string | undefined>>; readonly home: string; readonly platform: NodeJS.Platform }): string {
  if (platform === 'win32') return win32.join(env.LOCALAPPDATA ?? win32.join(home, 'AppData', 'Local'), 'rewind-admin')
  const xdg = env.XDG_STATE_HOME
  return posix.join(xdg !== undefined && posix.isAbsolute(xdg) ? xdg : posix.join(home, '.local', 'state'), 'rewind-admin')
}
