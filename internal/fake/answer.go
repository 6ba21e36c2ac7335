package fake

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/usher-mcp/usher/internal/jsonx"
	"github.com/usher-mcp/usher/mcp"
)

// answer sends the answer to a request, bent by the switches.
func (s *Server) answer(ctx context.Context, ex *exchange, result []byte, rpcErr *mcp.Error) {
	s.noise(ctx, ex)
	if v, ok := s.sw.fire("rpc-error", ex.msg.Method); ok {
		result, rpcErr = nil, mcp.Errorf(int64(v.number(mcp.CodeInternal)), "asked for by a switch")
	}
	var f frame
	if rpcErr != nil {
		f = newFrame(mcp.AppendError(nil, s.bendID(ex), rpcErr.JSON()))
		f.status = httpStatus(ex, rpcErr.Code)
	} else {
		f = s.envelope(ex, s.bendResult(ex, s.stamp(ex, result)))
	}
	for _, extra := range s.extras(ex) {
		if ex.out.send(extra, false) != nil {
			return
		}
	}
	if s.sw.hit(s, ex, "dup") {
		if ex.out.send(f, false) != nil {
			return
		}
	}
	// A client that is gone needs no answer.
	_ = ex.out.send(f, true)
}

// httpStatus is what the modern era demands for some errors.
func httpStatus(ex *exchange, code int64) int {
	modern := ex.modern || ex.version == "" // refused before its era was known
	switch {
	case !modern || ex.header == nil:
		return 0
	case code == mcp.CodeMethodNotFound:
		return 404
	case mcp.StatelessCode(code), ex.refused != nil:
		return 400
	}
	return 0
}

// stamp adds what every result of the modern era has. One that says itself what
// type it is stays as it is, byte for byte.
func (s *Server) stamp(ex *exchange, result []byte) []byte {
	if s.sw.hit(s, ex, "noresulttype") {
		return jsonx.Delete(result, "resultType")
	}
	if _, has := jsonx.Get(result, "resultType"); has || !ex.modern {
		return result
	}
	meta, _ := jsonx.Get(result, "_meta")
	return jsonx.Apply(result,
		jsonx.Edit{Key: "resultType", Value: []byte(`"complete"`)},
		jsonx.Edit{Key: "_meta", Value: jsonx.Set(meta, mcp.MetaServerInfo, s.serverInfo())})
}

// bendResult applies what is wrong with a result.
func (s *Server) bendResult(ex *exchange, result []byte) []byte {
	switch {
	case s.sw.hit(s, ex, "unknown-resulttype"):
		return jsonx.Set(result, "resultType", []byte(`"surprise"`))
	case s.sw.hit(s, ex, "tasks-result"):
		return []byte(`{"resultType":"task","task":{"taskId":"task-1","status":"working","ttlMs":60000,"pollIntervalMs":10}}`)
	case s.sw.hit(s, ex, "nullresult"):
		return []byte(`null`)
	case !ex.p.Retry && s.sw.hit(s, ex, "stateonly"):
		return []byte(`{"resultType":"input_required","requestState":"again"}`)
	case s.sw.hit(s, ex, "askforever"):
		return []byte(`{"resultType":"input_required","requestState":"again","inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"And now?","requestedSchema":{"type":"object","properties":{}}}}}}`)
	case s.sw.hit(s, ex, "badutf8"):
		return []byte("{\"content\":[{\"type\":\"text\",\"text\":\"bad \xff\xfe utf8\"}],\"resultType\":\"complete\"}")
	}
	if v, ok := s.sw.fire("deep", ex.msg.Method); ok {
		n := v.number(100000)
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"deep":%s%s}}`, strings.Repeat("[", n), strings.Repeat("]", n))
	}
	if v, ok := s.sw.fire("hugenumber", ex.msg.Method); ok {
		return fmt.Appendf(nil, `{"content":[],"structuredContent":{"a":1e400,"b":%s}}`, strings.Repeat("9", v.number(100000)))
	}
	return result
}

// envelope wraps a result, correctly or not.
func (s *Server) envelope(ex *exchange, result []byte) frame {
	id := s.bendID(ex)
	if v, ok := s.sw.fire("bigline", ex.msg.Method); ok {
		return bigFrame(id, int64(v.number(100)))
	}
	message := mcp.AppendResult(nil, id, result)
	switch {
	case s.sw.hit(s, ex, "nullid-error"):
		message = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"could not read that"}}`)
	case s.sw.hit(s, ex, "case-variant"):
		message = fmt.Appendf(nil, `{"jsonrpc":"2.0","ID":%s,"id":%s,"Result":{"content":[]},"result":%s}`, id, id, result)
	case s.sw.hit(s, ex, "duplicate-key"):
		message = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]},"result":%s}`, id, result)
	case s.sw.hit(s, ex, "batch"):
		message = append(append([]byte{'['}, message...), ']')
	}
	return newFrame(message)
}

func bigFrame(id mcp.ID, megabytes int64) frame {
	return frame{
		head: fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"`, id),
		pad:  megabytes * 1e6,
		tail: []byte(`"}]}}`),
	}
}

func (s *Server) bendID(ex *exchange) mcp.ID {
	switch {
	case s.sw.hit(s, ex, "wrongid"):
		return mcp.IntID(987654321)
	case s.sw.hit(s, ex, "idtype"):
		if n, ok := ex.msg.ID.Int(); ok {
			return mcp.TextID(fmt.Sprint(n))
		}
		return mcp.IntID(1)
	}
	return ex.msg.ID
}

// extras are frames sent before the answer.
func (s *Server) extras(ex *exchange) []frame {
	var out []frame
	if v, ok := s.sw.fire("garbage", ex.msg.Method); ok {
		for i := range v.number(3) {
			out = append(out, garbage(i))
		}
	}
	if v, ok := s.sw.fire("hugegarbage", ex.msg.Method); ok {
		out = append(out, frame{head: []byte("dump: "), pad: int64(v.number(100)) * 1e6, noise: true})
	}
	if v, ok := s.sw.fire("unsolicited", ex.msg.Method); ok {
		for i := range v.number(1000) {
			out = append(out, newFrame(mcp.AppendResult(nil, mcp.IntID(int64(5_000_000+i)), []byte(`{"content":[]}`))))
		}
	}
	return out
}

// garbage is the i-th kind of line that is no message.
func garbage(i int) frame {
	lines := [...]string{
		"Server listening, version 1.2.3",
		"\x1b[32minfo\x1b[0m {not json}",
		`{"level":"info","msg":"a log line in JSON"}`,
		`["an","array"]`,
		`{"jsonrpc":"2.0","id":1`,
		"\xff\xfe\x00binary",
		`{"jsonrpc":"1.0","id":1,"result":{}}`,
	}
	return frame{head: []byte(lines[i%len(lines)]), noise: true}
}

// noise sends what nobody asked for.
func (s *Server) noise(ctx context.Context, ex *exchange) {
	method := ex.msg.Method
	if v, ok := s.sw.fire("notification-flood", method); ok {
		f := notification(mcp.MethodNotifyMessage, []byte(`{"level":"debug","data":"noise"}`))
		for range v.number(10000) {
			_ = ex.out.send(f, false)
		}
	}
	token, hasToken := jsonx.Get(ex.p.Meta, mcp.MetaProgress)
	if v, ok := s.sw.fire("progress-flood", method); ok && hasToken {
		n := v.number(10000)
		for i := range n {
			_ = ex.out.send(progressFrame(token, i+1, n, ""), false)
		}
	}
	if s.sw.hit(s, ex, "wrong-token") {
		_ = ex.out.send(progressFrame([]byte(`"nobody-has-this-token"`), 1, 2, ""), false)
	}
	s.floods(ctx, ex.out, method, ex.modern)
	if ex.modern {
		return
	}
	if s.sw.hit(s, ex, "ping") {
		s.askNoted(ctx, ex, mcp.MethodPing, nil)
	}
	if s.sw.hit(s, ex, "unknown-request") {
		s.askNoted(ctx, ex, "fake/unknown", []byte(`{}`))
	}
}

// askNoted asks the client something and enters what came of it.
func (s *Server) askNoted(ctx context.Context, ex *exchange, method string, params []byte) {
	answer, err := ex.sess.ask(ctx, ex.out, method, params)
	detail := string(bytes.TrimSpace(answer))
	if err != nil {
		detail = err.Error()
	}
	s.note(ex.sess, Entry{Event: EventAnswered, Method: method, Detail: detail})
}
