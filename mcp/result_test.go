package mcp

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestResultType(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: ResultComplete, `{"resultType":"complete"}`: ResultComplete, `{"x":1,"resultType":"input_required"}`: ResultInputRequired,
		`{"resultType":"task"}`: ResultTask, `{"resultType":"odd"}`: "odd", `{"resultType":null}`: "", `{"resultType":5}`: "",
		`{"ResultType":"task"}`: ResultComplete, `null`: ResultComplete, `{"content":[{"resultType":"task"}]}`: ResultComplete,
	} {
		if got := ResultType([]byte(in)); got != want {
			t.Errorf("ResultType(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestReadFreshness(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for in, want := range map[string]Freshness{
		`{}`:                                   {},
		`null`:                                 {},
		`{"ttlMs":1500}`:                       {TTL: 1500 * time.Millisecond, Stated: true},
		`{"ttlMs":1.5e3}`:                      {TTL: 1500 * time.Millisecond, Stated: true},
		`{"ttlMs":0.5}`:                        {TTL: 500 * time.Microsecond, Stated: true},
		`{"ttlMs":0}`:                          {Stated: true},
		`{"ttlMs":-0}`:                         {Stated: true},
		`{"ttlMs":-5}`:                         {Stated: true},
		`{"ttlMs":-1e400}`:                     {Stated: true},
		`{"ttlMs":1e-400}`:                     {Stated: true},
		`{"ttlMs":31536000000}`:                {TTL: year, Stated: true},
		`{"ttlMs":31536000001}`:                {TTL: year, Stated: true},
		`{"ttlMs":9223372036854775807}`:        {TTL: year, Stated: true},
		`{"ttlMs":1e400}`:                      {TTL: year, Stated: true},
		`{"ttlMs":"1500"}`:                     {},
		`{"ttlMs":null}`:                       {},
		`{"ttlMs":true}`:                       {},
		`{"ttlMs":[1]}`:                        {},
		`{"TTLMS":5}`:                          {},
		`{"ttlMs":5,"ttlMs":6}`:                {},
		`{"ttlMs":5,"cacheScope":"public"}`:    {TTL: 5 * time.Millisecond, Public: true, Stated: true},
		`{"cacheScope":"private","ttlMs":5}`:   {TTL: 5 * time.Millisecond, Stated: true},
		`{"ttlMs":5,"cacheScope":"Public"}`:    {TTL: 5 * time.Millisecond, Stated: true},
		`{"ttlMs":5,"cacheScope":1}`:           {TTL: 5 * time.Millisecond, Stated: true},
		`{"cacheScope":"public"}`:              {Public: true},
		`{"content":[{"ttlMs":5}],"_meta":{}}`: {},
		`{"ttlMs":5,"cacheScope":"private","cacheScope":"public"}`: {},
	} {
		if diff := cmp.Diff(want, ReadFreshness([]byte(in))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", in, diff)
		}
	}
}

func FuzzReadFreshness(f *testing.F) {
	for _, s := range []string{`{"ttlMs":1e400}`, `{"ttlMs":-1}`, `{"ttlMs":5,"cacheScope":"public"}`, `{"ttlMs":`, `[]`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := ReadFreshness(raw)
		if got.TTL < 0 || got.TTL > maxTTL || got.TTL > 0 && !got.Stated {
			t.Fatalf("%q: %+v", raw, got)
		}
		_ = ResultType(raw)
	})
}
