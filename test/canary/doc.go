// Command canary runs the tests and looks for leaked secrets in everything they leave
// behind:
//
//	go run ./test/canary go test -json ./...
//
// It owns the sweep over a whole run. The fake authorization servers issue tokens,
// codes and secrets that look like nothing else, and write down the verifiers they
// are shown; here they are looked for in all output of all tests (and so in the
// output, logs and errors of every command that a script runs), in the arguments and
// environments of all processes below this one, and in every file that is written
// below the temporary directory, sealed stores among them. Pages are swept by the
// tests that ask for them, and every fake server refuses to run when a secret stands
// in its own arguments or environment. It does not own any test, nor how tests are
// chosen.
//
// Flow: main starts the command → its output is read as test events (report.go),
// shown as go test shows it, and swept (sweep.go) → meanwhile processes are looked at
// (processes.go) and files are swept as they are closed (files_linux.go) → leaks, if
// any, are told with the place they were found in, and the exit code is 1.
package main
