// Package cmdutil is what all commands share.
//
// A command gets a [Factory]: the world it sees ([IO]), the configuration, the app that
// it opens, and how it prints. Beside it are functions for what commands have in
// common: arguments, completion, questions at the terminal, tables, live output, error
// texts with a next step, and exit codes.
//
// Data goes to standard output, notes to standard error. Colours, symbols, progress and
// questions appear only on a terminal, and text from elsewhere is cleaned of what a
// terminal would act on before it is printed.
package cmdutil
