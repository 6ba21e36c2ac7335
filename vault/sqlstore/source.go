package sqlstore

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/usher-mcp/usher/vault"
)

// CheckSource refuses with vault.ErrInvalid what names neither a PostgreSQL database
// nor a file: the URL of another scheme, often a slip of the pen, would become the name
// of a SQLite file, with its password. The error shows the scheme and nothing else.
func CheckSource(source string) error {
	path, isSQLite := strings.CutPrefix(source, "sqlite:")
	if IsPostgres(source) {
		return nil
	}
	scheme, _, found := strings.Cut(path, ":")
	drive := runtime.GOOS == "windows" && len(scheme) == 1
	if found && !drive && isScheme(scheme) {
		return fmt.Errorf("%w: a store cannot be opened by %q; it is a file, sqlite:PATH or postgres://…", vault.ErrInvalid, scheme+":****")
	}
	host := isSQLite && strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///")
	if host || strings.Contains(path, "://") {
		return fmt.Errorf("%w: a store is a file, sqlite:PATH or postgres://…; this is a URL of another kind", vault.ErrInvalid)
	}
	if !isSQLite && strings.Contains(source, "=") && keywordSource().MatchString(source) {
		return fmt.Errorf("%w: a store is a file or postgres://USER@HOST/DATABASE, not a list of keywords such as host=…", vault.ErrInvalid)
	}
	return nil
}

// isScheme says whether s could stand before the colon of a URL.
func isScheme(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '+' && r != '-' && r != '.') {
			return false
		}
	}
	return s != ""
}

// keywordSource finds the other form that libpq takes.
func keywordSource() *regexp.Regexp {
	return regexp.MustCompile(`(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=`)
}
