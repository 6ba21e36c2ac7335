package mcp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/limit"
)

func TestCheckMethod(t *testing.T) {
	for _, method := range append(methodConstants(t), guardedMethods[:]...) {
		if err := CheckMethod(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
		if n := testing.AllocsPerRun(10, func() { _ = CheckMethod(method) }); n != 0 && KnownMethod(method) {
			t.Errorf("%s costs %v allocations", method, n)
		}
	}
	for _, method := range []string{"x/y", "com.example/frobnicate", "tasks/other", "$/progress", "a", "tools", "call", strings.Repeat("m", limit.MethodSize)} {
		if err := CheckMethod(method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	for _, method := range []string{
		"tools//call", "/tools/call", "tools/call/", "Tools/Call", "tools/call ", " tools/call", "tools/call\t", "tools\u200b/call",
		"tools/cаll", "ｔools/call", "tools／call", "tools\\call", "tools.call", "tools_call", "toolsCall", "tools/./call", "tools/x/../call",
		"tools%2Fcall", "tools/c%61ll", "tools/call\x00", "resources//read", "Prompts/get", "completion/Complete", "tasks//get",
		"notifications/Cancelled", "notifications/tools/listChanged", "méthode", "a b", "", "a//b", "a/", "/a", "../a", "a?b", "a#b",
		strings.Repeat("m", limit.MethodSize+1),
	} {
		if err := CheckMethod(method); err == nil || err.Code != CodeMethodNotFound {
			t.Errorf("%q: %v", method, err)
		}
	}
}

// FuzzCheckMethod: nothing passes that becomes a guarded method when it is trimmed,
// made lower case and freed from slashes that stand twice.
func FuzzCheckMethod(f *testing.F) {
	for _, s := range []string{"tools/call", "Tools//Call", "x/y", "tools/./call", "%74ools/call", "ｔools/call"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, method string) {
		passes := CheckMethod(method) == nil
		if guarded := guardedBy(method); passes && guarded != "" && guarded != method {
			t.Fatalf("%q passes and reads as %q", method, guarded)
		}
		if passes && (len(method) > limit.MethodSize || strings.ContainsFunc(method, func(r rune) bool { return r <= ' ' || r > '~' })) {
			t.Fatalf("%q passes", method)
		}
	})
}

func guardedBy(method string) string {
	lenient := strings.ToLower(strings.Trim(strings.TrimSpace(method), "/."))
	for strings.Contains(lenient, "//") {
		lenient = strings.ReplaceAll(lenient, "//", "/")
	}
	for _, name := range guardedMethods {
		if method == name || lenient == strings.ToLower(name) {
			return name
		}
	}
	return ""
}

// TestLookalikeMembers: a member that a lenient server may read as a guarded one is
// refused, on whichever level it is decided on.
func TestLookalikeMembers(t *testing.T) {
	for _, member := range []string{"ｎame", "Name", "name ", " name", "n\u200bame", "nаme", "name\x00", "na\u0301me", "n_ame", "ＵＲＩ", "task_id", "arguments\u00a0", "Ref", "ｒef"} {
		params := fmt.Appendf(nil, `{"name":"a",%s:"b"}`, jsonx.Quote(member))
		if _, err := ReadParams(params); err == nil || err.Code != CodeInvalidParams {
			t.Errorf("%s: %v", params, err)
		}
	}
	for _, ref := range []string{`{"type":"ref/prompt","name":"a","ｎame":"b"}`, `{"type":"ref/resource","uri":"a","URI":"b"}`, `{"name":"a","name":"b"}`} {
		if _, err := ReadParams([]byte(`{"ref":` + ref + `}`)); err == nil || err.Code != CodeInvalidParams {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, params := range []string{`{"ref":{"type":"ref/prompt","name":"a","title":"b"},"argument":{"name":"x","value":""},"context":{}}`, `{"名前":1,"meta":2,"naïveté":3}`} {
		if _, err := ReadParams([]byte(params)); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
	if _, err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"x","ｐarams":{}}`)); err == nil {
		t.Error("an envelope with a look-alike of params is read")
	}
}

func TestLongNamesAreRefused(t *testing.T) {
	for _, member := range []string{"name", "uri", "taskId"} {
		for n, fits := range map[int]bool{limit.URISize: true, limit.URISize + 1: false} {
			if _, err := ReadParams(fmt.Appendf(nil, `{%q:"%s"}`, member, strings.Repeat("a", n))); (err == nil) != fits {
				t.Errorf("%s of %d bytes: %v", member, n, err)
			}
		}
	}
}
