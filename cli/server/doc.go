// Package server holds the commands that edit and list the configured servers: add,
// remove, list, approve, allow and deny.
package server
