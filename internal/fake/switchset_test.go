package fake

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestEverySwitchIsExercised fails for a switch that no test names.
func TestEverySwitchIsExercised(t *testing.T) {
	var source strings.Builder
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "_test.go") && f.Name() != "switchset_test.go" {
			text, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for _, i := range Switches() {
		quoted := slices.ContainsFunc([]string{`"`, `=`, `;`}, func(end string) bool {
			return strings.Contains(source.String(), `"`+i.Name+end) || strings.Contains(source.String(), "`"+i.Name+end)
		})
		if !quoted {
			t.Errorf("no test uses %s", i.Name)
		}
		if i.Doc == "" || !strings.Contains(Help(), i.Name) {
			t.Errorf("%s is not documented", i.Name)
		}
	}
}

func TestParseSwitch(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Switch
		err  string
	}{
		{text: "silent", want: Switch{Name: "silent"}},
		{text: "wrongid", want: Switch{Name: "wrongid", On: []string{"tools/call"}}},
		{text: "wrongid;on=*", want: Switch{Name: "wrongid"}},
		{text: "latency=5;on=tools/list,tools/call;after=2;times=1", want: Switch{Name: "latency", Value: "5", On: []string{"tools/list", "tools/call"}, After: 2, Times: 1}},
		{text: "redirect=http://127.0.0.1/?a=b", want: Switch{Name: "redirect", Value: "http://127.0.0.1/?a=b"}},
		{text: "nope", err: `unknown switch "nope"; known are silent, `},
		{text: "latency=soon", err: `switch "latency=soon": the value is not a number`},
		{text: "silent;when=later", err: `unknown part "when"`},
		{text: "silent;times=x", err: `invalid syntax`},
	} {
		got, err := ParseSwitch(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %s", tt.text, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreUnexported(Switch{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.text, err, diff)
		}
	}
}

func TestNewPanicsOnUnknownSwitch(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New accepted an unknown switch")
		}
	}()
	New(&Options{Switches: []string{"nope"}})
}
