// Package example builds and runs the module of examples/host, which uses usher from
// outside this module, and checks what it prints. Run it with go test.
package example
