// Package cli is the usher command: it reads flags, calls the library and shows
// what came back.
//
// [Main] builds the command tree and maps errors to exit codes; [Run] is the same
// without signals. The commands are in packages by noun: server, setup, login, run,
// serve, inspect, store and demo, each with a function Commands. What they share is in
// cmdutil. A command is newCmdX, with flags, help and examples, which fills an xOptions
// and hands it to xRun, or to the runF of a test.
//
// Data goes to standard output, words to standard error; colours, symbols and progress
// appear only on a terminal. It owns nothing that another surface would need: that lives
// in internal/app and below.
package cli
