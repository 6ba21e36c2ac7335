package need

import (
	"os"
	"os/exec"
	"testing"
)

// postgresVariable names the PostgreSQL database that tests may use: they make
// and drop schemas of their own in it.
const postgresVariable = "USHER_TEST_POSTGRES"

// Postgres returns the URL of a PostgreSQL database. scripts/postgres.sh starts
// one for the time of a command; `make test` does so.
func Postgres(t testing.TB) string {
	t.Helper()
	return require(t, FindPostgres)
}

// FindPostgres is Postgres for programs that are not tests.
func FindPostgres() (string, error) {
	if url := os.Getenv(postgresVariable); url != "" {
		return url, nil
	}
	return "", notThere("PostgreSQL is not running; run: scripts/postgres.sh run COMMAND…")
}

// Strace returns the path of a strace that may trace.
func Strace(t testing.TB) string {
	t.Helper()
	return require(t, FindStrace)
}

// FindStrace is Strace for programs that are not tests. A strace that is not
// allowed to trace, as in some containers, counts as missing.
func FindStrace() (string, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return "", notThere("strace: " + ErrMissing.Error())
	}
	if out, err := exec.Command(path, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		return "", notThere("strace may not trace here: " + string(out))
	}
	return path, nil
}

// notThere is an ErrMissing with words of its own.
type notThere string

func (e notThere) Error() string { return string(e) }

// Is makes it an ErrMissing.
func (e notThere) Is(target error) bool { return target == ErrMissing }
