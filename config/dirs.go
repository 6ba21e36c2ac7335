package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Where files are called what.
const (
	userFileName = "mcp.json"
	projectDir   = ".usher"
	projectFile  = ".mcp.json"
)

// Dirs are the places usher uses. Nothing here creates them.
type Dirs struct {
	Config string // the user's mcp.json
	State  string // the store, the lock files, the pins
	Run    string // control sockets
}

// UserFile is the path of the user's own mcp.json.
func (d Dirs) UserFile() string { return filepath.Join(d.Config, userFileName) }

// System is the outside that paths are derived from. The zero value is the
// real one; tests and programs that embed usher fill in their own.
type System struct {
	Home      string                      // default os.UserHomeDir
	Workdir   string                      // default os.Getwd
	GOOS      string                      // default runtime.GOOS
	LookupEnv func(string) (string, bool) // default os.LookupEnv
}

// WithDefaults fills in what is unset from the real system. A home directory
// that cannot be found stays empty.
func (s System) WithDefaults() System {
	if s.LookupEnv == nil {
		s.LookupEnv = os.LookupEnv
	}
	if s.GOOS == "" {
		s.GOOS = runtime.GOOS
	}
	if s.Home == "" {
		s.Home, _ = os.UserHomeDir() // FindDirs reports it, where it matters
	}
	if s.Workdir == "" {
		s.Workdir, _ = os.Getwd() // no working directory: no project file
	}
	return s
}

// Getenv returns a variable, or "" when it is unset.
func (s System) Getenv(name string) string {
	v, _ := s.LookupEnv(name)
	return v
}

// FindDirs decides the places: all in USHER_HOME when that is set, else
// usher/ in the XDG configuration and state directories (on Windows in
// APPDATA and LOCALAPPDATA). The XDG rules ignore relative values.
func FindDirs(sys System) (Dirs, error) {
	sys = sys.WithDefaults()
	if home := sys.Getenv("USHER_HOME"); home != "" {
		if !filepath.IsAbs(home) {
			home = filepath.Join(sys.Workdir, home)
		}
		return Dirs{Config: home, State: home, Run: filepath.Join(home, "run")}, nil
	}
	configVar, configDir := "XDG_CONFIG_HOME", ".config"
	stateVar, stateDir := "XDG_STATE_HOME", filepath.Join(".local", "state")
	if sys.GOOS == "windows" {
		configVar, configDir = "APPDATA", filepath.Join("AppData", "Roaming")
		stateVar, stateDir = "LOCALAPPDATA", filepath.Join("AppData", "Local")
	}
	base := func(variable, fallback string) (string, error) {
		if dir := sys.Getenv(variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, "usher"), nil
		}
		if sys.Home == "" {
			return "", fmt.Errorf("find the home directory: HOME is not set; set HOME or USHER_HOME")
		}
		return filepath.Join(sys.Home, fallback, "usher"), nil
	}
	config, err := base(configVar, configDir)
	if err != nil {
		return Dirs{}, err
	}
	state, err := base(stateVar, stateDir)
	if err != nil {
		return Dirs{}, err
	}
	return Dirs{Config: config, State: state, Run: filepath.Join(state, "run")}, nil
}

// findProject returns the project files that apply to the working directory:
// those of the nearest directory that has any, up to the one that holds .git.
// Outside a repository only the working directory itself is looked at, since
// anyone may be able to write the directories above it. candidates are all
// the paths that were looked at.
func findProject(workdir string) (files, candidates []string) {
	if workdir == "" {
		return nil, nil
	}
	dirs := []string{workdir}
	if root := repositoryRoot(workdir); root != "" {
		for dir := workdir; dir != root; {
			dir = filepath.Dir(dir)
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		for _, name := range []string{projectFile, filepath.Join(projectDir, userFileName)} {
			path := filepath.Join(dir, name)
			candidates = append(candidates, path)
			if _, err := os.Stat(path); err == nil {
				files = append(files, path)
			}
		}
		if len(files) > 0 {
			break
		}
	}
	return files, candidates
}

func repositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
