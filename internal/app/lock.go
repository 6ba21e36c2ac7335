package app

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"

	"github.com/usher-mcp/usher/config"
	"github.com/usher-mcp/usher/policy/pins"
)

// LockPath is where the lock of the project's file stands, "" when no project file
// is in use.
func LockPath(cfg *config.Config) string {
	for _, f := range cfg.Files {
		if f.Layer == config.LayerProject {
			return filepath.Join(filepath.Dir(f.Path), pins.LockName)
		}
	}
	return ""
}

// projectLock reads the lock beside the project's file, which stands in for pins
// that are not there yet; it speaks for the project's own servers only. One that
// cannot be read is told and ignored: the tools are then pinned as they are first
// seen, as without a lock.
func projectLock(o *Options) *pins.Lock {
	path := LockPath(o.Config)
	if path == "" {
		return nil
	}
	lock, err := pins.ReadLock(path)
	if err == nil {
		maps.DeleteFunc(lock.Servers, func(name string, _ map[string]pins.LockedTool) bool {
			srv, ok := o.Config.Server(name)
			return !ok || srv.Origin.Layer != config.LayerProject
		})
		return lock
	}
	if !errors.Is(err, fs.ErrNotExist) && o.Log != nil {
		o.Log.Error("the lock file is ignored", "reason", err)
	}
	return nil
}
