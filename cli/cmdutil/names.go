package cmdutil

import (
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/config"
)

// KnownServers refuses names that no server has.
func KnownServers(cfg *config.Config, names []string) error {
	for _, name := range names {
		if _, ok := cfg.Server(name); !ok {
			return NoServer(cfg, name)
		}
	}
	return nil
}

// NoServer says that a server is not configured, and which may have been meant.
func NoServer(cfg *config.Config, name string) error {
	err := fmt.Errorf("no server named %s is configured%s", config.Visible(name), DidYouMean(cfg.Nearest(name)))
	if len(cfg.Servers) == 0 {
		return WithHint(err, "usher import\nusher add NAME URL")
	}
	return WithHint(err, "usher list")
}

// DidYouMean asks for the nearest names, as the end of a sentence.
func DidYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = config.Visible(n)
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}

// Warn tells what was ignored.
func (f *Factory) Warn(cfg *config.Config) {
	for _, w := range cfg.Warnings {
		w.File = f.Short(w.File)
		f.Note("%s", Clean("warning: "+w.String()))
	}
}

// ServerAddress is the address or the command line, in one line that shows what is
// there.
func ServerAddress(s config.Server) string {
	if s.URL != "" {
		return quoteWord(s.URL)
	}
	if s.Command == "" {
		return "–"
	}
	words := []string{quoteWord(s.Command)}
	for _, arg := range s.Args {
		words = append(words, quoteWord(arg))
	}
	return strings.Join(words, " ")
}

// quoteWord quotes what would not be one plain word otherwise.
func quoteWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,~${}*?&#", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return config.Visible(s)
}
