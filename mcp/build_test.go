package mcp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuild(t *testing.T) {
	id := TextID("a")
	for _, tt := range []struct {
		name string
		got  []byte
		want parts
	}{
		{"request", AppendRequest(nil, id, "m\"", []byte(`{"a": 1}`)), parts{KindRequest, `"a"`, "m\"", `{"a": 1}`, "", ""}},
		{"request without params", AppendRequest(nil, IntID(5), "m", nil), parts{KindRequest, `5`, "m", "", "", ""}},
		{"notification", AppendNotification(nil, "m", []byte(`{}`)), parts{KindNotification, "", "m", "{}", "", ""}},
		{"result", AppendResult(nil, id, []byte(`{"n":9007199254740993}`)), parts{KindResponse, `"a"`, "", "", `{"n":9007199254740993}`, ""}},
		{"no result", AppendResult(nil, id, nil), parts{KindResponse, `"a"`, "", "", `{}`, ""}},
		{"error", AppendError(nil, id, Errorf(-32602, "x").JSON()), parts{KindResponse, `"a"`, "", "", "", `{"code":-32602,"message":"x"}`}},
		{"error without id", AppendError(nil, ID{}, []byte(`{}`)), parts{KindResponse, `null`, "", "", "", `{}`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse(tt.got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, partsOf(m)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got := string(AppendNotification([]byte("before "), "m", nil)); got != `before {"jsonrpc":"2.0","method":"m"}` {
		t.Errorf("got %s", got)
	}
}
