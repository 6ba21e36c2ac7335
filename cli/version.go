package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in releases.
var version = ""

// Build says which program this is.
type Build struct {
	Number   string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version returns the build information of this program.
func Version() Build {
	b := Build{Number: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Number == "" {
		b.Number = info.Main.Version
	}
	if b.Number == "" || b.Number == "(devel)" {
		b.Number = "dev"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build on one line.
func (b Build) String() string {
	return fmt.Sprintf("usher %s (%s, %s)", b.Number, b.Go, b.Platform)
}

func newCmdVersion(a *factory) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Show which usher this is", GroupID: "config", Args: exactly(0),
		Example: "  usher version\n  usher version --json",
		RunE: func(*cobra.Command, []string) error {
			b := Version()
			if asJSON {
				return a.printJSON(b)
			}
			fmt.Fprintln(a.io.Out, b)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
