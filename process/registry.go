package process

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// markerName is the variable by which a child's descendants are recognised when
// nothing else ties them to it.
const markerName = "USHER_CHILD"

// record is what a registry holds of one child.
type record struct {
	Pid        int    `json:"pid"` // zero until it runs
	Start      uint64 `json:"start"`
	Marker     string `json:"marker,omitempty"`
	Owner      int    `json:"owner"`
	OwnerStart uint64 `json:"ownerStart"`
	Boot       string `json:"boot"`
}

// entry is the file of a record. A nil entry is a child nobody remembers.
type entry struct {
	path   string
	record record
}

// register gives the child its marker and writes its record, before there is a
// child that could be forgotten.
func register(opt Options, s *spec) (*entry, error) {
	id := rand.Text()
	if needsMarker(opt) {
		s.marker = markerName + "=" + id
		s.env = append(withoutMarker(s.env), s.marker)
	}
	if opt.Registry == "" || !registryUseful {
		return nil, nil
	}
	if err := os.MkdirAll(opt.Registry, 0o700); err != nil {
		return nil, fmt.Errorf("registry of children: %w", err)
	}
	e := &entry{
		path:   filepath.Join(opt.Registry, id+".json"),
		record: record{Marker: s.marker, Owner: os.Getpid(), OwnerStart: startTime(os.Getpid()), Boot: bootID()},
	}
	return e, e.write()
}

func withoutMarker(env []string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, v := range env {
		if !strings.HasPrefix(v, markerName+"=") {
			kept = append(kept, v)
		}
	}
	return kept
}

// started completes the record.
func (e *entry) started(pid int) error {
	if e == nil {
		return nil
	}
	e.record.Pid, e.record.Start = pid, startTime(pid)
	return e.write()
}

// write replaces the file in one step, since another host may be reading it.
func (e *entry) write() error {
	b, err := json.Marshal(e.record)
	if err != nil {
		return fmt.Errorf("registry of children: %w", err)
	}
	next := e.path + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return fmt.Errorf("registry of children: %w", err)
	}
	if err := os.Rename(next, e.path); err != nil {
		return fmt.Errorf("registry of children: %w", err)
	}
	return nil
}

// remove forgets the child. What cannot be removed is found dead by the next Reap.
func (e *entry) remove() {
	if e != nil {
		_ = os.Remove(e.path)
	}
}
