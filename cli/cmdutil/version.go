package cmdutil

import (
	"fmt"
	"runtime"
	"runtime/debug"
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
