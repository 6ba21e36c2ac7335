#!/usr/bin/env bash
# Installs what usher's tests need and is missing, and says what it did.
#
# Wanted beforehand: Go, Node (18 or later, for npm) and git. Everything that
# comes from npm or from Go modules lands in .cache/ of this checkout; only
# Debian packages go into the system, and only when this runs as root.
#
# Running it again is quick: each step has a stamp made of its inputs.
# To add a step: one `debian` line for a Debian package, or one `step` line
# with a function that installs into .cache/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache="$PWD/.cache"
mkdir -p "$cache/bin" "$cache/stamp"

say() { printf 'setup: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

# Two runs at once would install over each other.
if command -v flock >/dev/null; then
  exec 9>"$cache/setup.lock"
  flock 9
fi

# retry COMMAND...: three tries, since a registry can be slow to answer.
retry() {
  local try
  for try in 1 2 3; do
    "$@" && return 0
    [ "$try" = 3 ] || { say "try $try of 3 did not work: $*"; sleep $((try * 3)); }
  done
  return 1
}

# ---- Debian packages -------------------------------------------------------

missing=()

# debian PROGRAM PACKAGE...: PROGRAM is a name on PATH or a path pattern; when
# it is not there, PACKAGEs are wanted.
debian() {
  local program=$1 found
  shift
  found=$(command -v "$program" || compgen -G "$program" | tail -n 1 || true)
  if [ -n "$found" ]; then
    say "found $program ($found)"
  else
    missing+=("$@")
  fi
}

install_missing() {
  [ ${#missing[@]} -gt 0 ] || return 0
  local command="apt-get install -y --no-install-recommends ${missing[*]}"
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (no apt-get here; install them with this system's own package manager)"
  [ "$(id -u)" = 0 ] || die "missing: ${missing[*]}; run: sudo apt-get update && sudo $command"
  retry apt-get update -qq || die "apt-get update did not work"
  DEBIAN_FRONTEND=noninteractive retry $command >"$cache/apt.log" 2>&1 ||
    { tail -n 20 "$cache/apt.log" >&2; die "did not work: $command"; }
  say "installed Debian packages: ${missing[*]}"
}

# ---- steps that install into .cache/ ---------------------------------------

# step NAME FUNCTION PROOF INPUT...: runs FUNCTION unless PROOF exists and the
# INPUTs (files or words) are those of the last time it worked.
step() {
  local name=$1 run=$2 proof=$3 stamp key input
  shift 3
  stamp="$cache/stamp/$name"
  key=$(for input in "$@"; do if [ -f "$input" ]; then cat "$input"; else echo "$input"; fi; done | sha256sum)
  if [ -e "$proof" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then
    say "found $name"
    return 0
  fi
  local start=$SECONDS
  "$run" || die "$name: installation did not work"
  [ -e "$proof" ] || die "$name: installed, but $proof is not there"
  printf '%s\n' "$key" >"$stamp"
  say "installed $name ($((SECONDS - start)) s)"
}

npm_programs() {
  rm -rf "$cache/npm" && mkdir -p "$cache/npm"
  cp test/npm/package.json test/npm/package-lock.json test/npm/.npmrc "$cache/npm/"
  (cd "$cache/npm" && retry npm ci --loglevel=error --no-progress >/dev/null)
}

lint_tools() {
  (cd tools && retry go build -o "$cache/bin/" tool)
}

# tools/fixture/go.sum holds the hashes of all it is built from.
conformance_fixture() {
  (cd tools/fixture && GOFLAGS=-mod=readonly retry go build -o "$cache/bin/" tool)
}

# ---- what is wanted --------------------------------------------------------

for program in go node npm git; do
  command -v "$program" >/dev/null || die "$program is not on PATH; install it and run this again"
done
go_version=$(go env GOVERSION)
say "found go ($go_version), node ($(node --version)), git ($(git --version | cut -d' ' -f3))"

debian make make
debian gcc gcc libc6-dev # the race detector needs cgo
debian ps procps         # tests look for processes left behind
debian strace strace     # tests of the store kill and fail it at every system call
debian '/usr/lib/postgresql/*/bin/postgres' postgresql # scripts/postgres.sh starts a private one
debian chromium chromium fonts-dejavu-core             # tests click through the web pages
debian tmux tmux         # tests look at the live board as a terminal shows it
install_missing

step npm-programs npm_programs "$cache/npm/node_modules/@modelcontextprotocol/conformance/dist/index.js" \
  test/npm/package.json test/npm/package-lock.json test/npm/.npmrc "$(uname -sm)"
step lint-tools lint_tools "$cache/bin/staticcheck" tools/go.mod tools/go.sum "$go_version"
step conformance-fixture conformance_fixture "$cache/bin/everything-server" tools/fixture/go.mod tools/fixture/go.sum "$go_version"

say "ready: Node $("$PWD"/scripts/node22.sh --version), programs in .cache/"
