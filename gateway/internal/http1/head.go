package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// maxBody is the longest body that is taken here: what net/http reads of one that its
// handler did not want.
const maxBody = 256 << 10

// head is what stands before the body of a request.
type head struct {
	target target
	host   string
	length int64
	header http.Header
}

// target is the first line of a request.
type target struct {
	text string // the whole line
	uri  string
	url  url.URL
}

// kind is what a header means to the connection.
type kind byte

const (
	ordinary kind = iota
	toHost
	hasLength
	keepsAlive
	foreign // something that is not served here
)

// line is one header. Most are the same in all requests of a connection, and what was
// made of them is used again.
type line struct {
	text, key, value string
	kind             kind
}

// read makes out a head, which ends with an empty line. It is false for whatever is not
// a POST with a body of known length, written as plainly as can be.
func (c *conn) read(text []byte) (h head, plain bool) {
	first, rest, ok := cutLine(text)
	if !ok || !c.readTarget(first) {
		return head{}, false
	}
	n := 0
	for !bytes.Equal(rest, endOfHead[:2]) {
		var raw []byte
		if raw, rest, ok = cutLine(rest); !ok || !c.readLine(n, raw) {
			return head{}, false
		}
		n++
	}
	c.lines = c.lines[:n]
	h = head{target: c.first, length: -1, header: make(http.Header, n)}
	values := make([]string, n)
	for i := range c.lines {
		l := &c.lines[i]
		switch l.kind {
		case toHost:
			if h.host != "" {
				return head{}, false
			}
			h.host = l.value
			continue // net/http has it there alone
		case hasLength:
			if h.length >= 0 {
				return head{}, false
			}
			h.length, _ = strconv.ParseInt(l.value, 10, 64) // readLine has looked at it
		}
		if have := h.header[l.key]; have != nil {
			h.header[l.key] = append(have, l.value)
			continue
		}
		values[i] = l.value
		h.header[l.key] = values[i : i+1 : i+1]
	}
	return h, h.host != "" && h.length >= 0 && h.length <= maxBody
}

// cutLine cuts a line off. It is false where one ends otherwise than it should.
func cutLine(text []byte) (first, rest []byte, ok bool) {
	i := bytes.IndexByte(text, '\n')
	if i < 1 || text[i-1] != '\r' {
		return nil, nil, false
	}
	return text[:i-1], text[i+1:], true
}

// readTarget reads the first line into c.first.
func (c *conn) readTarget(raw []byte) bool {
	if string(raw) == c.first.text {
		return true
	}
	text := string(raw)
	uri, ok := strings.CutPrefix(text, "POST ")
	if !ok {
		return false
	}
	if uri, ok = strings.CutSuffix(uri, " HTTP/1.1"); !ok || !plainURI(uri) {
		return false
	}
	if plainPath(uri) {
		c.first = target{text, uri, url.URL{Path: uri}}
		return true
	}
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		return false
	}
	c.first = target{text, uri, *u}
	return true
}

// plainPath is a path that means itself.
func plainPath(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '/' && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return !strings.HasPrefix(s, "//")
}

// plainURI is a path, perhaps with a query, of visible ASCII.
func plainURI(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return strings.HasPrefix(s, "/")
}

// readLine reads the header with number n into c.lines.
func (c *conn) readLine(n int, raw []byte) bool {
	if n == len(c.lines) {
		if n < cap(c.lines) {
			c.lines = c.lines[:n+1] // perhaps a request before the last one had it
		} else {
			c.lines = append(c.lines, line{})
		}
	}
	l := &c.lines[n]
	if string(raw) == l.text && l.text != "" {
		return true
	}
	text := string(raw)
	name, value, ok := strings.Cut(text, ":")
	if !ok || !plainName(name) || !plainValue(value) {
		return false
	}
	*l = line{text: text, key: textproto.CanonicalMIMEHeaderKey(name), value: strings.Trim(value, " \t")}
	l.kind = kindOf(l.key, l.value)
	if l.kind != foreign {
		return true
	}
	*l = line{}
	return false
}

// plainName is what header names are made of.
func plainName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return s != ""
}

// plainValue is printable ASCII.
func plainValue(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' || s[i] >= 0x7f) && s[i] != '\t' {
			return false
		}
	}
	return true
}

// plainHost is a name or an address, perhaps with a port.
func plainHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("-._:[]", rune(c)) {
			return false
		}
	}
	return s != ""
}

// plainLength is a number that is no longer than it has to be.
func plainLength(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) < 10 && (s[0] != '0' || s == "0")
}

func kindOf(key, value string) kind {
	switch key {
	case "Host":
		if plainHost(value) {
			return toHost
		}
		return foreign
	case "Content-Length":
		if plainLength(value) {
			return hasLength
		}
		return foreign
	case "Connection":
		if strings.EqualFold(value, "keep-alive") {
			return keepsAlive
		}
		return foreign
	case "Transfer-Encoding", "Trailer", "Te", "Expect", "Upgrade", "Pragma", "Proxy-Connection", "Http2-Settings":
		return foreign
	}
	return ordinary
}
