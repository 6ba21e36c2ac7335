package need

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Database is a PostgreSQL server of one test's own, which it may stop and start
// without harm to others.
type Database struct {
	// URL is where the server is, also after it was stopped and started again.
	URL string

	t   testing.TB
	dir string
}

// OwnPostgres starts a server that ends with the test. It takes about two seconds;
// tests that stop nothing share one with [Postgres].
func OwnPostgres(t testing.TB) *Database {
	t.Helper()
	Postgres(t) // missing is missing, in the same words
	d := &Database{t: t}
	dir, url, _ := strings.Cut(d.script("own"), "\n")
	d.dir, d.URL = dir, strings.TrimSpace(url)
	t.Cleanup(func() { d.script("drop", d.dir) })
	return d
}

// Halt ends the server as a crash does: nothing is told to its clients, and when it is
// started again it has to recover.
func (d *Database) Halt() {
	d.t.Helper()
	d.script("halt", d.dir)
}

// Resume starts the server again and returns when it takes connections.
func (d *Database) Resume() {
	d.t.Helper()
	d.script("resume", d.dir)
}

func (d *Database) script(args ...string) string {
	d.t.Helper()
	root, err := Root()
	if err != nil {
		d.t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(root, "scripts", "postgres.sh"), args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		d.t.Fatal(fmt.Errorf("scripts/postgres.sh %s: %w: %s", args[0], err, said.String()))
	}
	return string(out)
}
