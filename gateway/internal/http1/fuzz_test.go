package http1

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzHead: what is read here net/http reads too, and in the same way; also after
// another request on the same connection.
func FuzzHead(f *testing.F) {
	for _, text := range requests {
		if len(text) < 1000 {
			f.Add([]byte(text), []byte(plainRequest))
		}
	}
	f.Fuzz(func(t *testing.T, text, before []byte) {
		var c conn
		if i := bytes.Index(before, endOfHead); i >= 0 {
			_, _ = c.read(before[:i+len(endOfHead)])
		}
		i := bytes.Index(text, endOfHead)
		if i < 0 {
			return
		}
		h, plain := c.read(text[:i+len(endOfHead)])
		if !plain {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(text)))
		if err != nil {
			t.Fatalf("net/http does not take it: %v", err)
		}
		if want.Method != http.MethodPost || want.Proto != "HTTP/1.1" || want.Close || want.TransferEncoding != nil || want.Trailer != nil {
			t.Fatalf("net/http takes it for something else: %+v", want)
		}
		got := []any{h.target.uri, &h.target.url, h.host, h.length, h.header}
		if diff := cmp.Diff([]any{want.RequestURI, want.URL, want.Host, want.ContentLength, want.Header}, got); diff != "" {
			t.Errorf("-net/http +ours\n%s", diff)
		}
	})
}
