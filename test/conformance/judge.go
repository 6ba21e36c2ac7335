package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

//go:embed floors.json
var floorsJSON []byte

// floors holds, per kind of leg, the least number of passed checks that counts.
type floors map[string]map[string]int

func readFloors() (floors, error) {
	var f floors
	if err := json.Unmarshal(floorsJSON, &f); err != nil {
		return nil, fmt.Errorf("read floors.json: %w", err)
	}
	return f, nil
}

// A check is one row of the suite's checks.json.
type check struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

// A result is a judged scenario.
type result struct {
	scenario scenario
	passed   int
	floor    int
	problems []string // empty: passed
	output   []byte   // what the suite printed, for a failed one
	dir      string
	onlyLate bool     // failed, and only by the check that measures time
	earlier  []string // what was wrong with the tries before this one
	known    bool     // it failed, for a reason that is written down
	took     time.Duration
}

func (r result) ok() bool { return len(r.problems) == 0 }

// judge fills in what the run and its checks.json say. Anything that is not
// plainly a pass is a problem.
func (r *result) judge(ended run, dir string, floors map[string]int) {
	if ended.err != nil {
		r.problems = append(r.problems, fmt.Sprintf("suite: %v", ended.err))
	}
	checks, err := readChecks(dir)
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
	late, other := false, err != nil
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			r.passed++
		case "FAILURE", "WARNING":
			isLate := c.ID == timing[r.scenario.name]
			late, other = late || isLate, other || !isLate
			r.problems = append(r.problems, fmt.Sprintf("%s %s: %s", c.Status, c.ID, c.Message))
		case "INFO", "SKIPPED": // say nothing about the client
		default:
			other = true
			r.problems = append(r.problems, fmt.Sprintf("check %s has the unknown status %q", c.ID, c.Status))
		}
	}
	floor, known := floors[r.scenario.name]
	r.floor = floor
	switch {
	case !known:
		r.problems = append(r.problems, "no floor is recorded for it in floors.json")
	case r.passed < floor:
		r.problems = append(r.problems, fmt.Sprintf("only %d checks passed, the floor is %d", r.passed, floor))
	}
	r.onlyLate = late && !other && !ended.clientFailed()
	if !r.ok() {
		r.output = ended.output
	}
}

// readChecks finds the one checks.json that a run left below dir.
func readChecks(dir string) ([]check, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "checks.json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for results: %w", err)
	}
	if len(files) != 1 {
		return nil, fmt.Errorf("the scenario left %d results, want one", len(files))
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	var checks []check
	if err := json.Unmarshal(data, &checks); err != nil {
		return nil, fmt.Errorf("read %s: %w", files[0], err)
	}
	return checks, nil
}
