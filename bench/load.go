package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/usher-mcp/usher/internal/wire"
	"github.com/usher-mcp/usher/mcp"
)

// load is one stretch of calls to a contestant: so many clients, each asking again
// as soon as it has its answer.
type load struct {
	url     string   // base, with a slash at its end
	paths   []string // endpoints, taken in turn
	legacy  bool
	clients int
	size    int // bytes of a result, about
	wait    int // milliseconds that a call takes
	tool    string
	list    bool          // tools/list instead of a call
	every   time.Duration // from one call of a client to its next; 0: at once
}

// run calls until ctx ends and returns how long each call took.
func (l load) run(ctx context.Context) ([]time.Duration, error) {
	var mu sync.Mutex // guards all, failed
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	for i := range l.clients {
		wg.Go(func() {
			took, err := l.client(ctx, i)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil && failed == nil {
				failed = fmt.Errorf("client %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	return all, failed
}

// client is one client with one connection of its own. It writes requests and reads
// answers by hand, since net/http would cost more than what is measured.
func (l load) client(ctx context.Context, n int) ([]time.Duration, error) {
	s, err := l.speak(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, err
	}
	defer func() { _ = s.conn.Close() }()
	var took []time.Duration
	next := time.Now().Add(l.every * time.Duration(n) / time.Duration(max(l.clients, 1)))
	for i := 0; ctx.Err() == nil; i++ {
		if l.every > 0 {
			time.Sleep(time.Until(next))
			next = next.Add(l.every)
		}
		path := l.paths[(n+i)%len(l.paths)]
		if l.legacy && s.sessions[path] == "" {
			if err := s.initialize(path); err != nil {
				return took, err
			}
		}
		began := time.Now()
		if err := s.call(path, fmt.Sprintf(`"%d-%d"`, n, i)); err != nil {
			return took, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// speak connects.
func (l load) speak(ctx context.Context) (*speaker, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(l.url, "http://"), "/")
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return &speaker{load: l, host: host, conn: c, r: bufio.NewReaderSize(c, 128<<10), sessions: map[string]string{}}, nil
}

// speaker is one connection.
type speaker struct {
	load
	host     string
	conn     net.Conn
	r        *bufio.Reader
	out      []byte
	body     []byte
	sessions map[string]string // by path, older era
	id       int
}

const modernMeta = `"_meta":{"` + mcp.MetaVersion + `":"` + mcp.Latest + `","` + mcp.MetaClientInfo +
	`":{"name":"bench","version":"1"},"` + mcp.MetaClientCaps + `":{}}`

// call asks once and checks that the answer is to this very question.
func (s *speaker) call(path, nonce string) error {
	s.id++
	params := fmt.Appendf(nil, `{"name":%q,"arguments":{"nonce":%s,"size":%d,"wait":%d}`, s.tool, nonce, s.size, s.wait)
	method, name := mcp.MethodToolsCall, s.tool
	if s.list {
		method, name, params = mcp.MethodToolsList, "", []byte(`{`)
	}
	if !s.legacy {
		if !s.list {
			params = append(params, ',')
		}
		params = append(params, modernMeta...)
	}
	body, _, err := s.ask(path, method, name, append(params, '}'))
	if err != nil {
		return err
	}
	want := `"nonce":` + nonce
	if s.list {
		want = `"tools":[{`
	}
	if !bytes.Contains(body, []byte(want)) || !bytes.Contains(body, fmt.Appendf(nil, `"id":%d`, s.id)) {
		return fmt.Errorf("an answer reached the wrong caller: %.300s, want %s", body, want)
	}
	return nil
}

// initialize begins a session of the older era.
func (s *speaker) initialize(path string) error {
	_, session, err := s.ask(path, mcp.MethodInitialize, "", []byte(`{"protocolVersion":"`+mcp.LatestLegacy+`","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`))
	if err != nil {
		return err
	}
	if session == "" {
		return errors.New("there is no session in the answer to initialize")
	}
	s.sessions[path] = session
	_, _, err = s.ask(path, mcp.MethodNotifyInit, "", nil)
	return err
}

// ask sends one message and reads the answer, whose bytes stay valid until the next.
func (s *speaker) ask(path, method, name string, params []byte) (body []byte, session string, err error) {
	var message []byte
	if params == nil {
		message = mcp.AppendNotification(nil, method, nil)
	} else {
		message = mcp.AppendRequest(nil, mcp.IntID(int64(s.id)), method, params)
	}
	out := append(s.out[:0], "POST /"+path+" HTTP/1.1\r\nHost: "+s.host+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	switch {
	case s.sessions[path] != "":
		out = append(out, "Mcp-Session-Id: "+s.sessions[path]+"\r\nMcp-Protocol-Version: "+mcp.LatestLegacy+"\r\n"...)
	case !s.legacy:
		out = append(out, "Mcp-Protocol-Version: "+mcp.Latest+"\r\nMcp-Method: "+method+"\r\n"...)
		if name != "" {
			out = append(out, "Mcp-Name: "+name+"\r\n"...)
		}
	}
	out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(message)), 10)
	s.out = append(append(out, "\r\n\r\n"...), message...)
	if _, err := s.conn.Write(s.out); err != nil {
		return nil, "", err
	}
	return s.answer()
}

// answer reads one HTTP answer.
func (s *speaker) answer() (body []byte, session string, err error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return nil, "", err
	}
	ok := bytes.HasPrefix(line, []byte("HTTP/1.1 20"))
	status := strings.TrimSpace(string(line[8:]))
	length, chunked := 0, false
	for {
		if line, err = s.r.ReadSlice('\n'); err != nil {
			return nil, "", err
		}
		key, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		if len(key) == 0 {
			break
		}
		switch {
		case bytes.EqualFold(key, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return nil, "", err
			}
		case bytes.EqualFold(key, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(key, []byte(wire.HeaderSession)):
			session = string(value)
		}
	}
	if err := s.readBody(length, chunked); err != nil {
		return nil, "", err
	}
	if !ok {
		return nil, "", fmt.Errorf("%s: %.300s", status, s.body)
	}
	return s.body, session, nil
}

func (s *speaker) readBody(length int, chunked bool) (err error) {
	if chunked {
		s.body, err = io.ReadAll(httputil.NewChunkedReader(s.r))
		if err == nil {
			_, err = s.r.ReadSlice('\n') // the line behind the last chunk
		}
		return err
	}
	if cap(s.body) < length {
		s.body = make([]byte, length)
	}
	s.body = s.body[:length]
	_, err = io.ReadFull(s.r, s.body)
	return err
}
