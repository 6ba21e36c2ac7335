#!/usr/bin/env bash
# lint.sh quick|full: format, vet and staticcheck; full adds vet for the other
# systems usher is built for, and govulncheck.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-full}
bin=.cache/bin
failed=0

say() { printf 'lint: %s\n' "$*"; }

# check NAME COMMAND...
check() {
  local name=$1 start=$SECONDS
  shift
  if "$@"; then
    say "$name ok ($((SECONDS - start)) s)"
  else
    say "$name FAILED"
    failed=1
  fi
}

formatted() {
  local files
  files=$(git ls-files -co --exclude-standard '*.go' | while read -r f; do [ -f "$f" ] && gofmt -s -l "$f"; done)
  [ -z "$files" ] || { printf '%s\nrun: make fmt\n' "$files"; return 1; }
}

vet_for() { GOOS=$1 CGO_ENABLED=0 go vet ./...; }

# Exit code 3 means that it found something. Anything else that is not 0 means
# that it could not look; only an unreachable database is forgiven, aloud.
vulnerabilities() {
  local out code=0
  out=$("$bin/govulncheck" ./... 2>&1) || code=$?
  case $code in
  0) ;;
  3) printf '%s\n' "$out"; return 1 ;;
  *)
    if grep -qiE 'dial tcp|no such host|lookup |forbidden|timeout|connection refused|proxyconnect|fetching vulnerabilities|db index|HTTP (GET|POST)' <<<"$out"; then
      say "govulncheck NOT RUN: its database cannot be reached from here:"
      printf '%s\n' "$out" | tail -n 2
    else
      printf '%s\n' "$out"
      return 1
    fi
    ;;
  esac
}

check "gofmt" formatted
check "vet" go vet ./...
check "staticcheck" "$bin/staticcheck" ./...
if [ "$mode" = full ]; then
  for os in linux darwin windows; do check "vet for $os" vet_for "$os"; done
  check "govulncheck" vulnerabilities
fi
exit "$failed"
