// Package deploy checks the files of deploy/, as far as that is possible without
// what they are for: that they can be read, that they use flags and metrics that
// exist, and that nothing in them runs as root.
package deploy
