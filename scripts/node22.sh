#!/usr/bin/env bash
# Runs Node 22 or later: the one that scripts/setup.sh installed, else the
# system's own when it is new enough.
set -euo pipefail
root="$(dirname "${BASH_SOURCE[0]}")/.."
for node in "$root"/.cache/npm/node_modules/node-*/bin/node; do
  [ -x "$node" ] && exec "$node" "$@"
done
version=$(node --version 2>/dev/null || echo v0)
major=${version#v}
[ "${major%%.*}" -ge 22 ] && exec node "$@"
echo "Node 22 is not here (system Node: $version); run: make setup" >&2
exit 1
