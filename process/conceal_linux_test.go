package process

import "testing"

func TestBlank(t *testing.T) {
	const secret = "hush-4711"
	block := []byte("PATH=/bin\x00TOKEN=" + secret + "\x00HTTP_PROXY=http://u:" + secret + "@p\x00LC_ALL=C\x00=" + secret + "\x00NOVALUE\x00EMPTY=\x00USHER_HOME=/h\x00USHER_KEY=" + secret + "\x00")
	size := len(block)
	if !blank(block) {
		t.Error("nothing changed")
	}
	zeros := func(n int) string { return string(make([]byte, n)) }
	want := "PATH=/bin\x00TOKEN=" + zeros(9) + "\x00HTTP_PROXY=" + zeros(9+11) + "\x00LC_ALL=C\x00=" + zeros(9) + "\x00NOVALUE\x00EMPTY=\x00USHER_HOME=/h\x00USHER_KEY=" + zeros(9) + "\x00"
	if got := string(block); got != want || len(got) != size {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if blank([]byte("PATH=/bin\x00")) || blank(nil) {
		t.Error("changed what is harmless")
	}
}
