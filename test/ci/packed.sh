#!/bin/sh
# What scripts may rely on, proven with nothing but the packed tarball: exit codes, and reports that others read.
# usage: packed.sh [tarball]      without one, a copy of the package is packed
# Ends with 0 when all holds, 1 when something does not (a line beginning with "not ok" says what), 77 when the tarball
# cannot be installed because neither the cache of npm nor a registry has its dependencies.
set -u
here=$(cd "$(dirname "$0")" && pwd)
package=$(cd "$here/../.." && pwd)
work=$(mktemp -d) || exit 1
mounted=
finish() {
  status=$?
  trap - EXIT
  [ -z "$mounted" ] || umount "$mounted"
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM

failures=0
number=0
ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); failures=$((failures + 1)); echo "not ok $number - $1"; [ $# -lt 2 ] || echo "  $2"; }
skipped() { number=$((number + 1)); echo "ok $number - # skipped: $1"; }

# The tarball, installed into an empty folder.
tarball=${1:-}
if [ -z "$tarball" ]; then
  mkdir "$work/package"
  for name in package.json src jobs bin .ci README.md CHANGELOG.md LICENSE tsconfig.json tsconfig.types.json; do cp -R "$package/$name" "$work/package/" || exit 1; done
  ln -s "$package/node_modules" "$work/package/node_modules"
  (cd "$work/package" && npm pack --silent --pack-destination "$work") >"$work/pack.log" 2>&1 || { cat "$work/pack.log"; echo 'not ok - npm pack failed'; exit 1; }
  tarball=$(echo "$work"/*.tgz)
fi
mkdir "$work/empty" "$work/home"
echo '{"private": true}' >"$work/empty/package.json"
if ! (cd "$work/empty" && npm install --prefer-offline --omit=dev --no-audit --no-fund --fetch-retries=0 --fetch-timeout=20000 "$tarball") >"$work/install.log" 2>&1; then
  cat "$work/install.log"
  grep -Eq 'EAI_AGAIN|ENOTFOUND|ENOTCACHED|ECONN|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT|network' "$work/install.log" || { echo 'not ok - npm install failed'; exit 1; }
  echo 'skipped: neither the cache of npm nor a registry has the dependencies'
  exit 77
fi

now=2026-11-30T12:00:00Z
# In an environment of its own: nothing of this machine's settings and stores.
program() { (cd "$work/home" && exec env -i PATH="$PATH" HOME="$work/home" "$work/empty/node_modules/.bin/rewind-admin" "$@" --now "$now"); }

# ends_with <code> <words>...: the program, with these words, ends with this code.
ends_with() {
  expected=$1
  shift
  program "$@" >"$work/out" 2>"$work/err" </dev/null
  code=$?
  if [ "$code" -eq "$expected" ]; then ok "$expected: $(shown "$@")"; else not_ok "$expected: $(shown "$@")" "it ended with $code: $(head -n 3 "$work/err")"; fi
}
shown() { echo "$*" | sed "s#$work/##g"; }
# valid <kind> <file>...: a report in the format that it claims to have.
valid() {
  title="$1, $(shown "$2"): $3"
  if node "$here/validate.js" "$1" "$2" ${4:+"$4"} >"$work/out" 2>&1; then ok "$title"; else not_ok "$title" "$(head -n 5 "$work/out")"; fi
}

# Stores. The sessions are of /home/u/notes: S1 of yesterday, with versions 1 and 2 of a.md.
s1=11111111-1111-4111-8111-111111111111
m1=aaaaaaaa-0000-4000-8000-000000000001
m2=aaaaaaaa-0000-4000-8000-000000000002
hash=b6001c86ace16e89
young=2026-11-29T09:00:00.000Z
old=2026-09-01T09:00:00.000Z
message() { # <session> <message> <time>
  printf '{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"note it"},"uuid":"%s","timestamp":"%s","userType":"external","entrypoint":"cli","cwd":"/home/u/notes","sessionId":"%s","version":"2.1.332","gitBranch":"HEAD"}\n' "$2" "$3" "$1"
}
checkpoint() { # <message> <version>
  printf '{"type":"file-history-snapshot","messageId":"%s","snapshot":{"messageId":"%s","trackedFileBackups":{"a.md":{"backupFileName":"%s@v%s","version":%s,"backupTime":"%s"}},"timestamp":"%s"},"isSnapshotUpdate":false}\n' "$1" "$1" "$hash" "$2" "$2" "$young" "$young"
}
store() { # <name>
  root=$work/stores/$1/.claude
  mkdir -p "$root/projects/-home-u-notes" "$root/file-history/$s1"
  { message $s1 $m1 $young; checkpoint $m1 1; message $s1 $m2 $young; checkpoint $m2 2; } >"$root/projects/-home-u-notes/$s1.jsonl"
  echo robin >"$root/file-history/$s1/$hash@v1"
  printf 'robin\nwren\n' >"$root/file-history/$s1/$hash@v2"
  echo '{"cleanupPeriodDays": 30}' >"$root/settings.json"
  find "$root" -type d -exec chmod 700 {} +
  find "$root" -exec touch -d "$young" {} +
}
old_session() { # <number>
  id=$(printf '22222222-2222-4222-8222-%012d' "$1")
  message "$id" "$m1" "$old" >"$root/projects/-home-u-notes/$id.jsonl"
  touch -d "$old" "$root/projects/-home-u-notes/$id.jsonl"
}

store good; good=$root; old_session 1; old_session 2
store damaged; damaged=$root; rm "$root/file-history/$s1/$hash@v2"
mkdir -p "$work/stores/empty/.claude/projects"; empty=$work/stores/empty/.claude
mkdir "$work/stores/other"; echo text >"$work/stores/other/notes.txt"
store newer; newer=$root; echo '{"type":"file-history-pack"}' >>"$root/projects/-home-u-notes/$s1.jsonl"
store many; many=$root; count=0
while [ $count -lt 60 ]; do count=$((count + 1)); old_session $count; done
store unusable; unusable=$root; echo '{' >"$root/settings.json"
store locked; locked=$root; old_session 1; mkdir -m 700 "$root/.rewind-admin"
printf '{"pid":1,"host":"another machine","token":"ab","command":"expire","acquiredAt":"%s"}\n' "$now" >"$root/.rewind-admin/lock"; chmod 600 "$root/.rewind-admin/lock"
store hostile; hostile=$root
odd=$(printf 'file-history/%s/100%%: a,b::c\r\nnext;%%0A' $s1)
echo odd >"$root/$odd"; echo odd >"$root/file-history/100%25,c:d"; rm "$root/file-history/$s1/$hash@v1"
echo '{"notify": {"before": {"command": ["/bin/sh", "-c", "exit 75"]}}}' >"$work/put-off.json"
store full; full=$root; old_session 1

# Exit codes.
ends_with 0 --version
ends_with 0 help exit-codes
ends_with 0 verify --root "$good"
ends_with 0 verify --root "$empty"
ends_with 0 status --root "$good"
ends_with 0 expire --root "$good"
ends_with 1 verify --root "$damaged"
ends_with 0 verify --root "$damaged" --fail-on error --severity missing-backup=warn
ends_with 1 purge /home/u/nothing --root "$good"
ends_with 2 verify --root "$good" --no-such-option
ends_with 2 expire --root "$good" --older-than soon
ends_with 2 no-such-command
ends_with 3 rewind $s1 $m2 --root "$damaged" --cwd "$work/home"
ends_with 4 expire --root "$many"
ends_with 4 expire --root "$many" --apply
ends_with 0 expire --root "$many" --apply --max-delete 100%
ends_with 10 verify --root "$work/stores/nowhere"
ends_with 10 verify --root "$work/stores/other"
ends_with 11 expire --root "$locked" --apply
ends_with 0 expire --root "$locked"
ends_with 12 verify --root "$newer"
ends_with 65 expire --root "$unusable"
ends_with 65 run nightly --root "$unusable"
ends_with 75 run nightly --apply --root "$good" --config "$work/put-off.json"
ends_with 3 run nightly --roots-from "$work/stores/[gu]*/.claude"

# 28: a store on a file system without room.
mkdir "$work/small"
if mount -t tmpfs -o size=256k,mode=700 tmpfs "$work/small" 2>/dev/null; then
  mounted=$work/small
  cp -a "$full" "$work/small/.claude" && dd if=/dev/zero of="$work/small/filler" bs=1k 2>/dev/null
  ends_with 28 expire --root "$work/small/.claude" --apply
else
  skipped '28: no file system can be mounted here'
fi

# 130 and 143: a signal ends what waits in the foreground.
ended_by() { # <signal> <code>
  # Not by the function: the signal must come to the program itself, not to a shell that runs it.
  (cd "$work/home" && exec env -i PATH="$PATH" HOME="$work/home" "$work/empty/node_modules/.bin/rewind-admin" daemon --at '0 3 * * *' --root "$good" --status-file "$work/status-$1.json" --now "$now") >"$work/out" 2>"$work/err" </dev/null &
  child=$!
  waited=0
  while [ ! -s "$work/status-$1.json" ] && kill -0 $child 2>/dev/null && [ $waited -lt 300 ]; do sleep 0.1; waited=$((waited + 1)); done
  kill -s "$1" $child 2>/dev/null
  wait $child
  code=$?
  if [ $code -eq "$2" ]; then ok "$2: daemon, after SIG$1"; else not_ok "$2: daemon, after SIG$1" "it ended with $code"; fi
}
ended_by TERM 143
# Shells start what is in the background without SIGINT, so that another program sends it.
cat >"$work/interrupt.cjs" <<'JS'
const { spawn } = require('node:child_process')
const { existsSync } = require('node:fs')
const [program, home, root, status] = process.argv.slice(2)
const child = spawn(program, ['daemon', '--at', '0 3 * * *', '--root', root, '--status-file', status], { stdio: 'ignore', cwd: home, env: { PATH: process.env.PATH, HOME: home } })
const timer = setInterval(() => { if (existsSync(status) && child.kill('SIGINT')) clearInterval(timer) }, 50)
child.on('exit', (code) => { clearInterval(timer); process.exitCode = code ?? 1 })
JS
node "$work/interrupt.cjs" "$work/empty/node_modules/.bin/rewind-admin" "$work/home" "$good" "$work/status-INT.json"
code=$?
if [ $code -eq 130 ]; then ok '130: daemon, after SIGINT'; else not_ok '130: daemon, after SIGINT' "it ended with $code"; fi

# Reports.
for name in good damaged empty newer hostile; do
  root=$work/stores/$name/.claude
  for format in json ndjson junit sarif github; do program verify --root "$root" --format $format >"$work/$name.$format" 2>"$work/err"; done
  valid junit "$work/$name.junit" 'is valid by the schema'
  valid sarif "$work/$name.sarif" 'is valid by the schema of 2.1.0'
  valid github "$work/$name.github" 'annotations say what the JSON report says' "$work/$name.json"
  if node -e "for (const line of require('node:fs').readFileSync(process.argv[1], 'utf8').trimEnd().split('\n')) JSON.parse(line)" "$work/$name.ndjson"; then ok "ndjson, $name.ndjson: each line is JSON"; else not_ok "ndjson, $name.ndjson: each line is JSON"; fi
done
# By hand: in properties % : and , are escaped, in words only %; the end of a line never stands bare.
has() { if grep -Fq "$2" "$work/$1"; then ok "$1 has $2"; else not_ok "$1 has $2" "$(head -n 5 "$work/$1")"; fi; }
has hostile.github "file=$hostile/file-history/100%2525%2Cc%3Ad,title=rewind-admin foreign-file::"
has hostile.github "(file-history/100%2525,c:d)"
has hostile.github "file=$hostile/file-history/$s1/100%25%3A a%2Cb%3A%3Ac%0D%0Anext;%250A,title=rewind-admin foreign-file::"
if grep -Evq '^(::(error|warning|notice) [^:]*::.*|rewind-admin [^ ]+ verify: .*)$' "$work/hostile.github"; then not_ok 'hostile.github: a name made a line of its own'; else ok 'hostile.github: no name made a line of its own'; fi
has damaged.junit '<testcase name="missing-backup" classname="rewind-admin verify" time="0">'
has damaged.sarif '"ruleId": "missing-backup"'
ends_with 0 verify --root "$damaged" --baseline "$work/damaged.json"
ends_with 1 verify --root "$hostile" --baseline "$work/good.json"

echo "1..$number"
[ $failures -eq 0 ] || { echo "$failures of $number expectations failed"; exit 1; }
