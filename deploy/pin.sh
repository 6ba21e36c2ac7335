#!/usr/bin/env bash
# Prints the images that the files here use, each by the digest that its tag has now, as
# lines for a .env file. Keep the output: whoever moves a tag does not move a digest.
# Needs docker with buildx, and the network.
set -euo pipefail

pin() { # VARIABLE IMAGE
  local digest
  digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$2")
  [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]] || { echo "pin.sh: $2 has no digest: $digest" >&2; exit 1; }
  printf '%s=%s@%s\n' "$1" "$2" "$digest"
}

pin GO_IMAGE golang:1.26
pin POSTGRES_IMAGE postgres:17-alpine
pin NGINX_IMAGE nginx:1.29-alpine
