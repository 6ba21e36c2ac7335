// Package inspect holds the commands that show how usher and its servers are: status,
// doctor, surface, pins and audit.
package inspect
