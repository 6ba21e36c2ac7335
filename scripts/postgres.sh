#!/usr/bin/env bash
# A PostgreSQL server for tests: private, on a loopback port, thrown away after use.
#
#   scripts/postgres.sh run COMMAND...   starts one, runs COMMAND with its URL in
#                                        USHER_TEST_POSTGRES, stops it
#   scripts/postgres.sh start            starts one and prints its URL
#   scripts/postgres.sh stop             stops the one that start started
#
#   scripts/postgres.sh own              starts one for the process that runs this, and
#                                        prints its folder and its URL
#   scripts/postgres.sh halt FOLDER      ends that one as a crash does, and keeps the data
#   scripts/postgres.sh resume FOLDER    starts it again, at the same address
#   scripts/postgres.sh drop FOLDER      ends it and removes all of it
#
# When USHER_TEST_POSTGRES is set already, run uses that database and starts none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'postgres: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# PostgreSQL does not run as root: then it is its own user, or nobody.
user=
if [ "$(id -u)" = 0 ]; then
  user=nobody
  id -u postgres >/dev/null 2>&1 && user=postgres
fi
as_user() { if [ -n "$user" ]; then runuser -u "$user" -- "$@"; else "$@"; fi; }

# bin: the newest PostgreSQL of this system.
bin() {
  local found
  found=$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | sort -V | tail -n 1 || true)
  [ -n "$found" ] || found=$(command -v postgres || true)
  [ -n "$found" ] || die "not installed; run: make setup"
  dirname "$(readlink -f "$found")"
}

# base: .cache/postgres, unless the server's user cannot get there.
base() {
  mkdir -p .cache/postgres
  if as_user test -x "$PWD/.cache/postgres"; then
    echo "$PWD/.cache/postgres"
  else
    local elsewhere="${TMPDIR:-/tmp}/usher-postgres"
    mkdir -p "$elsewhere" && echo "$elsewhere"
  fi
}

# boot DIR PORT: starts the server of DIR.
boot() {
  # No socket in the file system: its path may be too long, and is not needed.
  (cd "$1" && as_user "$(bin)/pg_ctl" start --pgdata="$1/data" --log="$1/server.log" --wait --timeout=60 --silent -o \
    "-p $2 -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 -c fsync=on" >/dev/null 2>&1)
}

# halt DIR: ends the server of DIR without a checkpoint, so that it has to recover.
halt() {
  (cd "$1" && as_user "$(bin)/pg_ctl" stop --pgdata="$1/data" --mode=immediate --silent >/dev/null 2>&1)
}

# up DIR: makes a server in DIR, which must not exist, and writes DIR/url.
up() {
  local dir=$1 bin port password try
  bin=$(bin)
  mkdir -m 700 "$dir"
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  printf '%s' "$password" >"$dir/password"
  [ -z "$user" ] || chown -R "$user" "$dir"
  (cd "$dir" && as_user "$bin/initdb" --pgdata="$dir/data" --username=usher --pwfile="$dir/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync >"$dir/initdb.log" 2>&1) ||
    { tail -n 20 "$dir/initdb.log" >&2; die "initdb did not work"; }
  for try in $(seq 20); do
    port=$((20000 + RANDOM % 12000))
    if boot "$dir" "$port"; then
      printf '%s' "$port" >"$dir/port"
      printf 'postgres://usher:%s@127.0.0.1:%s/postgres?sslmode=disable\n' "$password" "$port" >"$dir/url"
      return 0
    fi
    grep -q 'Address already in use' "$dir/server.log" || break
  done
  tail -n 20 "$dir/server.log" >&2
  die "the server does not start"
}

# down DIR: stops the server in DIR and removes all of it.
down() {
  local dir=$1
  [ -d "$dir" ] || return 0
  if [ -f "$dir/data/postmaster.pid" ]; then
    halt "$dir" || true
  fi
  rm -rf "$dir"
}

# sweep BASE: servers of runs that were killed.
sweep() {
  local dir
  for dir in "$1"/run.*; do
    [ -d "$dir" ] || continue
    kill -0 "${dir##*.}" 2>/dev/null || { say "removing what a killed run left: $dir"; down "$dir"; }
  done
}

case ${1:-} in
run)
  shift
  [ $# -gt 0 ] || die "usage: scripts/postgres.sh run COMMAND..."
  [ -z "${USHER_TEST_POSTGRES:-}" ] || exec "$@"
  base=$(base)
  sweep "$base"
  dir="$base/run.$$"
  trap 'down "$dir"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  up "$dir"
  USHER_TEST_POSTGRES=$(cat "$dir/url") "$@"
  ;;
start)
  dir="$(base)/started"
  [ ! -d "$dir" ] || die "is running already: $(cat "$dir/url" 2>/dev/null)"
  up "$dir" || { down "$dir"; exit 1; }
  cat "$dir/url"
  ;;
stop) down "$(base)/started" ;;
own)
  base=$(base)
  sweep "$base"
  dir="$base/run.own$RANDOM.$PPID" # swept like other runs when that process was killed
  up "$dir" || { down "$dir"; exit 1; }
  printf '%s\n' "$dir"
  cat "$dir/url"
  ;;
halt) halt "${2:?which folder?}" ;;
resume) boot "${2:?which folder?}" "$(cat "$2/port")" || { tail -n 20 "$2/server.log" >&2; die "the server does not start again"; } ;;
drop) down "${2:?which folder?}" ;;
*) sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
