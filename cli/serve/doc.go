// Package serve holds the command serve and those that steer running ushers: console,
// reload, stop and hold. Metrics and traces of a serving usher live here too.
package serve
