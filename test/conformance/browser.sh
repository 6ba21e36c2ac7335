#!/bin/sh
# Stands in for the person's browser: it opens the page once, as a browser would,
# and follows the redirect to the waiting program, which may still be getting ready.
# It returns at once, so that whoever opened it is not held up.
(
  landed=$(curl -sS -m 20 -o /dev/null -w '%{redirect_url}' "$1")
  [ -n "$landed" ] && curl -sS -m 20 --retry 40 --retry-delay 0 --retry-max-time 15 --retry-connrefused -o /dev/null "$landed"
) </dev/null >/dev/null 2>&1 &
