// Package cli is the usher command: it reads flags, calls the library and shows
// what came back.
//
// [Main] builds the command tree and maps errors to exit codes. Each command has a
// file of its own with newCmdX (flags, help, examples) and a run function that
// knows nothing of cobra. Data goes to standard output, words to standard error;
// colours, symbols and progress appear only on a terminal.
//
// It owns nothing that another surface would need: that lives in the root package
// and below.
package cli
