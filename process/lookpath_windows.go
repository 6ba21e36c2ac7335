package process

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"strings"
)

// candidates adds the endings of PATHEXT, as the system itself does.
func candidates(path string, env []string) []string {
	var list []string
	if filepath.Ext(path) != "" {
		list = append(list, path)
	}
	for ext := range strings.SplitSeq(cmp.Or(variable(env, "PATHEXT"), ".COM;.EXE;.BAT;.CMD"), ";") {
		if ext != "" {
			list = append(list, path+strings.ToLower(ext))
		}
	}
	return list
}

func executableMode(fs.FileMode) bool { return true }
