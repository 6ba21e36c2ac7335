package lookalike

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/test/need"
)

func TestOf(t *testing.T) {
	known := []string{"id", "params", "taskId", "_meta", "name"}
	for key, want := range map[string]string{
		"id": "", "params": "", "taskId": "", // itself
		"ID": "id", "Id": "id", "iD": "id", "PARAMS": "params", "taskid": "taskId", "_Meta": "_meta",
		"param\u017f": "params", "ta\u017f\u212aId": "taskId", "\u0130d": "id", "\u0131D": "id",
		"id\x00": "id", "id\x00x": "id", "ID\x00": "id", "i\x00d": "id",
		"id ": "id", " id": "id", "\tid\n": "id", "ïd": "id", "i-d": "id", "task_id": "taskId", "task-ID": "taskId", "__meta": "_meta",
		"ｎame": "name", "nａme": "name", "n\u200bame": "name", "\ufeffname": "name", "na\u0301me": "name", "𝐧𝐚𝐦𝐞": "name",
		"nаme": "name", "ⓝⓐⓜⓔ": "name", "ⁿame": "name", "naₘe": "name", "name\u3000": "name", "n\U000e0061ame": "name",
		"": "", "\x00": "", "i": "", "idd": "", "meta": "", "param": "", "paramſſ": "", "\xffd": "", "na": "", "names": "",
		"_": "", "名前": "", strings.Repeat("x", 1000): "", "_" + strings.Repeat("-", 1000) + "meta": "_meta",
	} {
		if got := Of([]byte(key), known); got != want {
			t.Errorf("Of(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestOfCostsNoMemory(t *testing.T) {
	known := []string{"name", "uri", "arguments", "_meta"}
	for _, key := range []string{"name", "Name", "another", "context"} {
		raw := []byte(key)
		if n := testing.AllocsPerRun(10, func() { Of(raw, known) }); n != 0 {
			t.Errorf("%s costs %v allocations", key, n)
		}
	}
}

func TestOfIsLinear(t *testing.T) {
	for _, part := range []string{"\u200b", "é", "_", "\x00", "a"} {
		need.Linear(t, 4000, func(n int) func() {
			key := []byte("n" + strings.Repeat(part, n) + "ame")
			return func() { Of(key, []string{"name"}) }
		})
	}
}

// FuzzOf holds the rule against the reader it protects from: whatever encoding/json
// puts into a field, by a name that is not the field's, is one. Changes that generous
// readers undo are found, too.
func FuzzOf(f *testing.F) {
	for _, s := range []string{"id", "ID", "param\u017f", "tas\u212aId", "\u0130d", "name\x00", "", "\xff", "ｎame", "n a\u200bme"} {
		f.Add(s)
	}
	known := []string{"id", "params", "taskId", "_meta"}
	f.Fuzz(func(t *testing.T, key string) {
		var v struct {
			ID     int `json:"id"`
			Params int `json:"params"`
			TaskID int `json:"taskId"`
			Meta   int `json:"_meta"`
		}
		name, err := json.Marshal(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte("{"+string(name)+":1}"), &v); err != nil {
			t.Fatal(err)
		}
		took := v.ID+v.Params+v.TaskID+v.Meta > 0
		got := Of([]byte(key), known)
		itself := slices.Contains(known, key)
		if took && !itself && got == "" || itself && got != "" {
			t.Fatalf("%q: encoding/json takes it %v, Of says %q", key, took, got)
		}
		meant := got
		if itself {
			meant = key
		}
		for _, changed := range []string{" " + key, key + "\u200b", strings.ToUpper(key), "\ufeff" + key, key + " "} {
			if meant != "" && !slices.Contains(known, changed) && Of([]byte(changed), known) != meant {
				t.Fatalf("%q is %q, but %q is %q", key, meant, changed, Of([]byte(changed), known))
			}
		}
	})
}
