package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// startShim serves what target serves with the prefix of its names taken off, so
// that the joined endpoint is judged for what it does and not for its names. Host,
// Origin and sessions pass as they are.
func startShim(target, prefix string) (base string, stop func(), err error) {
	to, err := url.Parse(target)
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	own := l.Addr().String()
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.URL.Path = to.Scheme, to.Host, to.Path
			_, port, _ := net.SplitHostPort(own)
			_, behind, _ := net.SplitHostPort(to.Host)
			for _, name := range []string{"localhost:", "127.0.0.1:"} { // honest ones: the port is another
				r.Out.Host = strings.Replace(r.Out.Host, name+port, name+behind, 1)
				if o := r.Out.Header.Get("Origin"); o != "" {
					r.Out.Header.Set("Origin", strings.Replace(o, name+port, name+behind, 1))
				}
			}
			inward(r.Out, prefix)
		},
		ModifyResponse: func(r *http.Response) error { return outward(r, prefix) },
	}
	srv := &http.Server{Handler: proxy}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // until it is closed
	}()
	return "http://" + own, func() {
		_ = srv.Close()
		<-done
	}, nil
}

// ownTool reports whether a tool of the joined endpoint belongs to no server.
func ownTool(name string) bool { return name == "login" || name == "status" }

// inward adds the prefix to the names in a request.
func inward(r *http.Request, prefix string) {
	if r.Body == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m, err := mcp.Parse(body)
	if err == nil {
		switch m.Method {
		case mcp.MethodToolsCall, mcp.MethodPromptsGet:
			raw, ok := jsonx.Get(m.Params, "name")
			if name, _ := jsonx.Text(raw); !ok || ownTool(name) {
				break
			}
			body = jsonx.Set(body, "params", jsonx.Set(m.Params, "name", prefixed(raw, prefix)))
			if name := r.Header.Get(wire.HeaderName); name != "" {
				r.Header.Set(wire.HeaderName, prefix+strings.TrimSpace(name))
			}
		case mcp.MethodComplete:
			if ref, ok := jsonx.Get(m.Params, "ref"); ok {
				if raw, ok := jsonx.Get(ref, "name"); ok {
					ref = jsonx.Set(ref, "name", prefixed(raw, prefix))
					body = jsonx.Set(body, "params", jsonx.Set(m.Params, "ref", ref))
				}
			}
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.Header.Set("Content-Length", strconv.Itoa(len(body)))
}

func prefixed(raw []byte, prefix string) []byte {
	name, _ := jsonx.Text(raw)
	return jsonx.Quote(prefix + name)
}

// outward takes the prefix off the names in an answer.
func outward(r *http.Response, prefix string) error {
	switch {
	case strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = unprefix(body, prefix)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	case strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream"):
		r.ContentLength = -1
		r.Header.Del("Content-Length")
		r.Body = &events{from: r.Body, r: bufio.NewReaderSize(r.Body, 1<<20), prefix: prefix}
	}
	return nil
}

// unprefix changes the lists of a response.
func unprefix(message []byte, prefix string) []byte {
	result, ok := jsonx.Get(message, "result")
	if !ok {
		return message
	}
	for _, list := range []string{"tools", "prompts"} {
		items, ok := jsonx.Get(result, list)
		if !ok {
			continue
		}
		out := []byte("[")
		for e := jsonx.Array(items); e.Next(); {
			if len(out) > 1 {
				out = append(out, ',')
			}
			name := strings.TrimPrefix(jsonx.GetText(e.Value, "name"), prefix)
			out = append(out, jsonx.Set(e.Value, "name", jsonx.Quote(name))...)
		}
		result = jsonx.Set(result, list, append(out, ']'))
	}
	return jsonx.Set(message, "result", result)
}

// events is a stream of server-sent events with changed messages.
type events struct {
	from   io.Closer
	r      *bufio.Reader
	prefix string
	rest   []byte
}

func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		line, err := e.r.ReadBytes('\n')
		if err != nil {
			return 0, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			line = append([]byte("data: "), unprefix(bytes.TrimRight(data, "\n"), e.prefix)...)
			line = append(line, '\n')
		}
		e.rest = line
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *events) Close() error { return e.from.Close() }
