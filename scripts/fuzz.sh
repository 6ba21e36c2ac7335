#!/usr/bin/env bash
# Runs every fuzz target of the module for FUZZTIME (default 10s) each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
time=${FUZZTIME:-10s}
passed=0 failed=0
while read -r pkg; do
  while read -r target; do
    printf 'fuzz: %s %s\n' "$pkg" "$target"
    if go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
    fi
  done < <(go test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true)
done < <(grep -rlE --include='*_test.go' '^func Fuzz' . | grep -v '^./\.' | xargs -r -n1 dirname | sort -u)
printf 'fuzz: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
