package forward

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/usher-mcp/usher/auth"
	"github.com/usher-mcp/usher/internal/limit"
	"github.com/usher-mcp/usher/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestReader(t *testing.T) {
	done := fromRemote + `{"kind":"done"}`
	for name, tt := range map[string]struct {
		in    string
		kinds string // of the messages, in order
		noise []string
		err   error
	}{
		"one":                      {done + "\n", "done", nil, io.EOF},
		"line ends of a terminal":  {done + "\r\n", "done", nil, io.EOF},
		"no line end":              {done, "done", nil, io.EOF},
		"a greeting before":        {"Welcome!\n\n" + done + "\n", "done", []string{"Welcome!"}, io.EOF},
		"a greeting without end":   {"last login: today" + done + "\n", "done", []string{"last login: today"}, io.EOF},
		"noise between":            {done + "\nmail: you have mail\n" + done + "\n", "done done", []string{"mail: you have mail"}, io.EOF},
		"an echo of our own":       {fromLocal + `{"kind":"answer","answer":{"state":"s","code":"c"}}` + "\n" + done + "\n", "done", nil, io.EOF},
		"a kind of a later time":   {fromRemote + `{"kind":"weather","sun":1}` + "\n" + done + "\n", "weather done", nil, io.EOF},
		"damaged":                  {fromRemote + "{\"kind\":\n" + done + "\n", "", nil, ErrMalformed},
		"without what it promises": {fromRemote + `{"kind":"hello"}` + "\n", "", nil, ErrMalformed},
		"a row of nobody":          {fromRemote + `{"kind":"row","row":{}}` + "\n", "", nil, ErrMalformed},
		"broken off":               {fromRemote + `{"kind":"ro`, "", nil, io.EOF},
		"too long":                 {fromRemote + `{"kind":"` + strings.Repeat("x", limit.ForwardMessageBytes) + "\"}\n", "", nil, ErrMalformed},
		"long noise":               {strings.Repeat("x", 3*limit.ForwardMessageBytes) + "\n" + done + "\n", "done", []string{strings.Repeat("x", 1<<10)}, io.EOF},
		"nothing":                  {"", "", nil, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			var noise, kinds []string
			r := newReader(strings.NewReader(tt.in), fromRemote, func(line string) { noise = append(noise, line) })
			m, err := r.next()
			for ; err == nil; m, err = r.next() {
				kinds = append(kinds, m.Kind)
			}
			if !errors.Is(err, tt.err) || strings.Join(kinds, " ") != tt.kinds {
				t.Errorf("messages %v, %v; want %s, %v", kinds, err, tt.kinds, tt.err)
			}
			if diff := cmp.Diff(tt.noise, noise); diff != "" {
				t.Errorf("noise (-want +got):\n%s", diff)
			}
		})
	}
}

// A code crosses the line and appears in no other form of its message.
func TestCodeIsCarriedOnly(t *testing.T) {
	m := message{Kind: kindAnswer, Answer: &answer{State: "s", Code: carried{vault.NewSecret("canary-code")}}}
	var line bytes.Buffer
	if err := (&writer{mark: fromLocal, w: &line}).send(m); err != nil {
		t.Fatal(err)
	}
	got, err := newReader(&line, fromLocal, nil).next()
	if err != nil || got.Answer.Code.Reveal() != "canary-code" {
		t.Errorf("%+v, %v", got, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", *m.Answer, *got.Answer, *got.Answer); strings.Contains(text, "canary") {
		t.Errorf("printed: %s", text)
	}
}

// What became of an answer says the same to the browser on the other machine.
func TestResults(t *testing.T) {
	for _, err := range []error{nil, auth.ErrUnknownState, auth.ErrIssuer, auth.ErrDenied, auth.ErrRefused, auth.ErrUnavailable, io.EOF} {
		if got := resultOf(resultOf(err).err()); got != resultOf(err) {
			t.Errorf("%v: %s here, %s there", err, got, resultOf(err))
		}
	}
	if err := result("of a later time").err(); !errors.Is(err, auth.ErrUnavailable) {
		t.Errorf("an unknown result is %v", err)
	}
}

// FuzzReader reads whatever a line may bring. A message that it takes comes out the
// same when it is sent again, and no echo is handed on as noise.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "Welcome\n", fromRemote + `{"kind":"done"}` + "\n", "x" + fromRemote + `{"kind":"row","row":{"server":"a","phase":"failed","login":{"state":"s"}}}` + "\r\n",
		fromLocal + `{"kind":"answer","answer":{"state":"s","code":"c","iss":""}}` + "\n", fromRemote + `{"kind":"fault","fault":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := newReader(strings.NewReader(text), fromRemote, func(line string) {
			if strings.Contains(line, fromLocal) || len(line) > 1<<10 {
				t.Errorf("noise %q", line)
			}
		})
		for range 1000 {
			m, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, ErrMalformed) {
					t.Fatalf("error %v", err)
				}
				if errors.Is(err, io.EOF) {
					return
				}
				continue
			}
			var again bytes.Buffer
			if err := (&writer{mark: fromRemote, w: &again}).send(m); err != nil {
				t.Fatal(err)
			}
			first := again.String()
			second, err := newReader(&again, fromRemote, nil).next()
			if err != nil {
				t.Fatalf("sent again it cannot be read: %v: %s", err, first)
			}
			if err := (&writer{mark: fromRemote, w: &again}).send(second); err != nil || again.String() != first {
				t.Errorf("%v: %s became %s", err, first, &again)
			}
		}
	})
}
