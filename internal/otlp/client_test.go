package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/usher-mcp/usher/internal/retry"
)

// answer is what a collector says; err: it cannot be reached.
type answer struct {
	code  int
	after string // Retry-After
	kind  string // Content-Type
	body  []byte
	err   error
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// clientTo returns a client whose collector answers so, without a network: time in a
// bubble would wait for that.
func clientTo(t testing.TB, collector func(body []byte) answer) *Client {
	t.Helper()
	c := NewClient(&Target{URL: "http://me:hush@collector.example/v1/traces?key=hush", Timeout: time.Second}, "usher/test")
	c.http.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		a := collector(body)
		if a.err != nil {
			return nil, a.err
		}
		resp := &http.Response{StatusCode: a.code, Status: fmt.Sprint(a.code, " ", http.StatusText(a.code)), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}
		resp.Header.Set("Retry-After", a.after)
		resp.Header.Set("Content-Type", a.kind)
		return resp, nil
	})
	return c
}

func TestSendAgain(t *testing.T) {
	away := errors.New("connection refused")
	for _, tt := range []struct {
		name    string
		answers []answer // the last one stays
		tries   int
		least   time.Duration
		most    time.Duration
		err     string
	}{
		{"taken", []answer{{code: 200}}, 1, 0, 0, ""},
		{"busy once", []answer{{code: 503}, {code: 200}}, 2, firstWait / 2, firstWait * 2, ""},
		{"each kind of busy", []answer{{code: 429}, {code: 502}, {code: 504}, {code: 202}}, 4, firstWait * 2, giveUp, ""},
		{"away once", []answer{{err: away}, {code: 200}}, 2, firstWait / 2, firstWait * 2, ""},
		{"says when", []answer{{code: 429, after: "40"}, {code: 200}}, 2, 40 * time.Second, 40 * time.Second, ""},
		{"says too late", []answer{{code: 429, after: "3600"}}, 1, 0, 0, "429 Too Many Requests"},
		{"never", []answer{{code: 503, body: []byte("no \x1b[31mroom\n")}}, -1, giveUp / 3, giveUp, `503 Service Unavailable: "no \x1b[31mroom"`},
		{"broken", []answer{{err: away}}, -1, giveUp / 3, giveUp, "collector http://collector.example/v1/traces: connection refused"},
		{"wrong", []answer{{code: 400}}, 1, 0, 0, "collector http://collector.example/v1/traces: 400 Bad Request"},
		{"elsewhere", []answer{{code: 307}}, 1, 0, 0, "307 Temporary Redirect"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				c := clientTo(t, func([]byte) answer {
					tries++
					return tt.answers[min(tries, len(tt.answers))-1]
				})
				defer c.Close()
				began := time.Now()
				err := c.Send(t.Context(), []byte("x"))
				if took := time.Since(began); took < tt.least || took > tt.most {
					t.Errorf("took %v", took)
				}
				if tries != tt.tries && tt.tries > 0 || tries > 20 {
					t.Errorf("%d attempts", tries)
				}
				if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hush")) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
			})
		})
	}
}

// A program that ends does not wait for a collector that is away, and neither does
// one whose time is over.
func TestSendGivesUpAtTheEnd(t *testing.T) {
	for _, how := range []string{"hurry", "cancel"} {
		synctest.Test(t, func(t *testing.T) {
			c := clientTo(t, func([]byte) answer { return answer{code: 503} })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			end := map[string]func(){"hurry": c.Close, "cancel": cancel}[how]
			time.AfterFunc(time.Second, end)
			if err := c.Send(ctx, nil); err == nil || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v", how, err, time.Since(began))
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for v, want := range map[string]time.Duration{
			"": 0, "7": 7 * time.Second, "-1": 0, "x": 0, "99999999999999999999": 0,
			time.Now().Add(time.Minute).UTC().Format(http.TimeFormat):  time.Minute,
			time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat): 0,
		} {
			if got := retry.After(v); got != want {
				t.Errorf("%q: %v, want %v", v, got, want)
			}
		}
	})
}

func partial(n uint64, message string) []byte {
	in := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), n)
	in = protowire.AppendString(protowire.AppendTag(in, 2, protowire.BytesType), message)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), in)
}

func TestRejected(t *testing.T) {
	const kind = "application/x-protobuf"
	unknown := protowire.AppendFixed64(protowire.AppendTag(nil, 9, protowire.Fixed64Type), 1)
	unknown = protowire.AppendFixed32(protowire.AppendTag(unknown, 8, protowire.Fixed32Type), 1)
	for _, tt := range []struct {
		kind string
		body []byte
		want error
	}{
		{kind, nil, nil},
		{kind, partial(0, ""), nil},
		{kind, partial(3, "too old"), &Rejected{3, "too old"}},
		{kind + "; charset=utf-8", partial(0, "slow down"), &Rejected{0, "slow down"}},
		{kind, append(unknown, partial(1, "")...), &Rejected{1, ""}},
		{kind, partial(3, "x")[:3], nil},
		{kind, []byte{0xff, 0xff}, nil},
		{"text/html", partial(3, "x"), nil},
	} {
		c := clientTo(t, func([]byte) answer { return answer{code: 200, kind: tt.kind, body: tt.body} })
		if diff := cmp.Diff(tt.want, c.Send(t.Context(), nil)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", tt.body, diff)
		}
	}
	if got := (&Rejected{2, "a\x1bb"}).Error(); got != `the collector rejected 2 items: "a\x1bb"` {
		t.Error(got)
	}
}

func FuzzRejected(f *testing.F) {
	f.Add(partial(3, "x"))
	f.Add([]byte{0x0a, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, body []byte) {
		_ = rejected("application/x-protobuf", body)
		if n := protowire.ConsumeFieldValue(1, protowire.BytesType, body); n < 0 {
			return
		}
		// What can be read by the official reader is found here.
		message, _ := protowire.ConsumeBytes(body)
		var got []byte
		fields(protowire.AppendBytes(protowire.AppendTag(nil, 7, protowire.BytesType), message), func(_ int, _ uint64, part []byte) { got = part })
		if !bytes.Equal(got, message) {
			t.Errorf("read %q of %q", got, message)
		}
	})
}

func TestGzip(t *testing.T) {
	var got []byte
	c := clientTo(t, func(body []byte) answer { got = body; return answer{code: 200} })
	c.to.Gzip = true
	if err := c.Send(t.Context(), []byte("message")); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(got))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); string(text) != "message" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}
