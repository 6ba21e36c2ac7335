// Package run holds the commands that use servers: call, tools, describe, search,
// discover, card and logs.
package run
