package setup

import (
	"github.com/usher-mcp/usher/cli/cmdutil"
)

// The shape of usher init --json.
type (
	initJSON struct {
		Written bool         `json:"written"`
		Import  importedJSON `json:"import"`
		Link    linkJSON     `json:"link"`
	}
	undoJSON struct {
		Written bool     `json:"written"`
		File    string   `json:"file,omitempty"`
		Whole   bool     `json:"restored"`
		Removed []string `json:"removed"`
		Kept    []string `json:"kept"`
		Link    linkJSON `json:"link"`
	}
)

// initQuietly writes if it was told to, and prints JSON.
func initQuietly(f *cmdutil.Factory, s *firstRun, o *initOptions) error {
	w := &linking{}
	if o.yes && len(s.imports.Add) > 0 {
		if err := s.applyImports(); err != nil {
			return err
		}
	}
	var err error
	if !o.noLink && len(s.names) > 0 {
		if w, err = s.plannedLinks(s.names, o); err != nil {
			return err
		}
	}
	failed := w.failed
	out := initJSON{Written: o.yes, Import: importJSON(s.imports, o.yes && len(s.imports.Add) > 0)}
	out.Link = w.json(o.yes, failed)
	if o.yes {
		if err := s.keepLinks(w); err != nil {
			return err
		}
		_, more := w.apply()
		failed = append(failed, more...)
		out.Link = w.json(true, failed)
	}
	return printOutcome(f, out, failed)
}

func undoQuietly(f *cmdutil.Factory, w *linking, back *restoring, write bool) error {
	failed := w.failed
	if write {
		_, more := w.apply()
		failed = append(failed, more...)
		if len(failed) == 0 {
			if err := back.apply(f); err != nil {
				return err
			}
		}
	}
	out := undoJSON{
		Written: write, File: back.file, Whole: back.whole, Removed: append([]string{}, back.remove...),
		Kept: append([]string{}, back.kept...), Link: w.json(write, failed),
	}
	return printOutcome(f, out, failed)
}

// printOutcome prints JSON, and ends with a code that says whether something failed.
func printOutcome(f *cmdutil.Factory, v any, failed []error) error {
	if err := f.PrintJSON(v); err != nil || len(failed) == 0 {
		return err
	}
	return &cmdutil.SilentError{Code: cmdutil.ExitError}
}
