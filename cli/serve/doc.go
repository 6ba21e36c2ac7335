// Package serve holds the command serve and the commands that control running usher
// processes: console, reload, stop and hold. It also holds the metrics and traces of
// the gateway.
package serve
