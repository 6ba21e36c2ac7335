package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"time"
)

// serveHTTP speaks just enough HTTP/1.1 for well-behaved clients: net/http would
// cost more than everything else here.
func (e *echo) serveHTTP(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_ = e.converse(c) // it ends when the client leaves
			_ = c.Close()
		}()
	}
}

// incoming is one request.
type incoming struct {
	post, hang bool
	body       []byte
}

func (e *echo) converse(c net.Conn) error {
	r := bufio.NewReaderSize(c, 16<<10)
	var in incoming
	var body, out []byte
	for {
		if err := in.read(r); err != nil {
			return err
		}
		switch {
		case in.hang:
			_, _ = io.Copy(io.Discard, r) // until the client leaves
			return nil
		case !in.post:
			out = append(out[:0], "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n"...)
		default:
			var wait int
			body, wait = e.answer(body[:0], in.body)
			if wait > 0 {
				time.Sleep(time.Duration(wait) * time.Millisecond)
			}
			out = e.head(out[:0], len(body), in.body)
			out = append(out, body...)
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}

func (e *echo) head(out []byte, size int, request []byte) []byte {
	if size == 0 {
		return append(out, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"...)
	}
	out = append(out, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"...)
	if e.legacy && bytes.Contains(request, []byte(`"initialize"`)) {
		out = append(out, "Mcp-Session-Id: one-for-all\r\n"...)
	}
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(size), 10)
	return append(out, "\r\n\r\n"...)
}

var errRequest = errors.New("not a valid request")

// read reads one request; its body stays valid until the next.
func (in *incoming) read(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	in.post, in.hang = bytes.HasPrefix(line, []byte("POST ")), bytes.Contains(line, []byte(" /hang"))
	length, chunked := 0, false
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		name, value, ok := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
		switch {
		case len(name) == 0:
			return in.readBody(r, length, chunked)
		case !ok:
			return errRequest
		case bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		}
	}
}

func (in *incoming) readBody(r *bufio.Reader, length int, chunked bool) (err error) {
	if chunked {
		in.body, err = io.ReadAll(httputil.NewChunkedReader(r))
		if err == nil {
			_, err = r.ReadSlice('\n') // the line behind the last chunk
		}
		return err
	}
	if cap(in.body) < length {
		in.body = make([]byte, length)
	}
	in.body = in.body[:length]
	_, err = io.ReadFull(r, in.body)
	return err
}
